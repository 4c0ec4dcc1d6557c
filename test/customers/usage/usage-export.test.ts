import { expect, test } from 'vitest';
import { HOUR_ENCODINGS, lastClosedMs, PERIOD_ENCODINGS } from '../../../src/customers/usage/usage-export.ts';
import { HOUR_MS, unlessClosed } from '../../../src/store/usage-history.ts';

const HOUR = { startMs: Date.UTC(2096, 0, 1, 11), requests: 7, units: 7, refused: {} };

function identifierOf(customer: string): string {
  return JSON.parse(HOUR_ENCODINGS.stripe.line(customer, HOUR)).identifier;
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
  const lineOf = (format: keyof typeof HOUR_ENCODINGS) => HOUR_ENCODINGS[format].line('acme', hour);
  const id = 'acme/2096-01-01T11:00:00Z';
  expect(HOUR_ENCODINGS.csv.header).toBe('id,customer,start,requests,refused,units\n');
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

test('lines of a period have what was used in it, and Stripe adds up the overage', () => {
  const [startMs, endMs] = [Date.UTC(2096, 0, 31, 10), Date.UTC(2096, 1, 29, 10)];
  const period = { plan: 'pro', startMs, endMs, included: 100, used: 150, forgiven: 20, overage: 30 };
  const lineOf = (format: keyof typeof PERIOD_ENCODINGS) => PERIOD_ENCODINGS[format].line('acme', period);
  const id = 'acme/2096-01-31T10:00:00Z';
  const data = { plan: 'pro', ends_at: '2096-02-29T10:00:00Z', included: 100, used: 150, overage: 30 };
  expect(PERIOD_ENCODINGS.csv.header).toBe('id,customer,plan,starts_at,ends_at,included,used,overage\n');
  expect(lineOf('csv')).toBe(`${id},acme,pro,2096-01-31T10:00:00Z,2096-02-29T10:00:00Z,100,150,30\n`);
  expect(JSON.parse(lineOf('jsonl'))).toEqual({ id, customer: 'acme', starts_at: '2096-01-31T10:00:00Z', ...data });
  const time = '2096-01-31T10:00:00Z';
  expect(JSON.parse(lineOf('cloudevents'))).toMatchObject({ id, type: 'tollgate.usage.period', time, data });
  expect(JSON.parse(lineOf('stripe'))).toEqual({
    event_name: 'api_overage',
    identifier: id,
    timestamp: endMs / 1000 - 1,
    payload: { stripe_customer_id: 'acme', value: '30' },
  });
});
