import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type AccessLogMode, type AccessRecord, createAccessLog } from '../../src/observability/access-log.ts';
import { ANY_CHARACTER } from '../support/any-character.ts';

const FORWARDED: AccessRecord = {
  requestId: 'r-1',
  method: 'GET',
  route: '/api/v1/conversations/{id}',
  status: 200,
  source: 'upstream',
  customer: 'acme',
  plan: 'starter',
  keyId: 'key_1',
  clientAddress: '203.0.113.7',
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  durationMs: 12.34567,
  upstreamMs: 11,
  upstream: 'conversations:3000',
  quota: 'admitted',
  bytes: 420,
};
const REFUSED: AccessRecord = {
  requestId: 'r-2',
  method: 'POST',
  route: 'none',
  status: 404,
  problem: 'not_found',
  source: 'gateway',
  plan: 'none',
  clientAddress: '203.0.113.7',
  durationMs: 0.1,
};

const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 6);

function written(mode: AccessLogMode, records: readonly AccessRecord[]) {
  const lines: string[] = [];
  const accessLog = createAccessLog({
    destination: { write: (line) => void lines.push(line) },
    mode,
    clock: { nowMs: () => NOW_MS },
    scheduler: { after: () => ({ cancel() {} }) },
  });
  for (const record of records) accessLog.write(record);
  return lines.map((line) => {
    expect(line.endsWith('}\n')).toBe(true);
    const { time, ...rest } = JSON.parse(line) as Record<string, unknown>;
    expect(time).toBe('2026-01-02T03:04:05.006Z');
    return rest;
  });
}

it('a forwarded request is one line with all that is known of it', () => {
  expect(written('all', [FORWARDED])).toEqual([
    {
      level: 'info',
      request_id: 'r-1',
      method: 'GET',
      route: '/api/v1/conversations/{id}',
      status: 200,
      source: 'upstream',
      customer: 'acme',
      plan: 'starter',
      key_id: 'key_1',
      client: '203.0.113.7',
      trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
      duration_ms: 12.346,
      upstream_ms: 11,
      overhead_ms: 1.346,
      upstream: 'conversations:3000',
      quota: 'admitted',
      bytes: 420,
      msg: 'request',
    },
  ]);
});

it('what is not known of a request is left out', () => {
  expect(written('all', [REFUSED])).toEqual([
    {
      level: 'info',
      request_id: 'r-2',
      method: 'POST',
      route: 'none',
      status: 404,
      code: 'not_found',
      source: 'gateway',
      client: '203.0.113.7',
      duration_ms: 0.1,
      overhead_ms: 0.1,
      msg: 'request',
    },
  ]);
});

it("with errors only, refusals and 5xx are written, the backend's own 4xx are not", () => {
  const records = [FORWARDED, { ...FORWARDED, status: 404 }, { ...FORWARDED, status: 502 }, REFUSED];
  expect(written('errors', records).map(({ status, source }) => [status, source])).toEqual([
    [502, 'upstream'],
    [404, 'gateway'],
  ]);
});

it('when off, nothing is written', () => expect(written('off', [FORWARDED, REFUSED])).toEqual([]));

it('whatever the texts are, a line is one JSON document and gives them back', () => {
  const anything = fc.oneof(
    fc.string({ unit: ANY_CHARACTER }),
    fc.string({ unit: 'grapheme' }),
    fc.constant('"\\\n\u2028'),
  );
  fc.assert(
    fc.property(anything, anything, anything, (requestId, customer, keyId) => {
      const [line] = written('all', [{ ...FORWARDED, requestId, customer, keyId }]);
      expect(line).toMatchObject({ request_id: requestId, customer, key_id: keyId });
    }),
  );
});
