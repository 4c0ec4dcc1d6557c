import { expect, test } from 'vitest';
import { ENCODINGS, lastClosedMs } from '../../../src/customers/usage/usage-export.ts';
import { HOUR_MS, unlessClosed } from '../../../src/store/usage-history.ts';

const HOUR = { startMs: Date.UTC(2096, 0, 1, 11), requests: 7, units: 7, refused: {} };

function identifierOf(customer: string): string {
  return JSON.parse(ENCODINGS.stripe.line(customer, HOUR)).identifier;
}

test('identifiers for Stripe have at most 100 characters, are the same each time, and differ by customer', () => {
  const [long, longer, short] = ['a'.repeat(80), 'a'.repeat(128), 'a'.repeat(79)];
  const ids = [long, longer, short].map(identifierOf);
  for (const id of ids) expect(id.length).toBeLessThanOrEqual(100);
  expect(new Set(ids).size).toBe(3);
  expect(identifierOf(long)).toBe(ids[0]);
  expect(ids[2]).toBe(`${short}/2096-01-01T11:00:00Z`);
});

test('each format has the units of an hour, and beside them its requests', () => {
  const hour = { startMs: HOUR.startMs, requests: 7, units: 31, refused: { quota_exceeded: 2, suspended: 1 } };
  const lineOf = (format: keyof typeof ENCODINGS) => ENCODINGS[format].line('acme', hour);
  const id = 'acme/2096-01-01T11:00:00Z';
  expect(ENCODINGS.csv.header).toBe('id,customer,start,requests,refused,units\n');
  expect(lineOf('csv')).toBe(`${id},acme,2096-01-01T11:00:00Z,7,3,31\n`);
  expect(JSON.parse(lineOf('jsonl'))).toMatchObject({ id, requests: 7, refused: 3, units: 31 });
  expect(JSON.parse(lineOf('cloudevents'))).toMatchObject({ id, data: { requests: 7, refused: 3, units: 31 } });
  expect(JSON.parse(lineOf('stripe'))).toMatchObject({ identifier: id, payload: { value: '31' } });
});

test('an hour is exported only when the store changes it no more, by half a minute', () => {
  const hour = Date.UTC(2096, 0, 1, 11) / HOUR_MS;
  const exportedFromMs = (hour + 1) * HOUR_MS + 60_000;
  expect(lastClosedMs(exportedFromMs - 1)).toBe(hour * HOUR_MS);
  expect(lastClosedMs(exportedFromMs)).toBe((hour + 1) * HOUR_MS);
  expect(unlessClosed(hour, exportedFromMs - 30_001)).toBe(hour);
  expect(unlessClosed(hour, exportedFromMs - 30_000)).toBe(hour + 1);
});
