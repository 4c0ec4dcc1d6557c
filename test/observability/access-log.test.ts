import { expect, it } from 'vitest';
import { type AccessLogMode, type AccessRecord, createAccessLog } from '../../src/observability/access-log.ts';
import { createLogger, type LogLevel } from '../../src/observability/logger.ts';

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
  durationMs: 12.34567,
  upstreamMs: 11,
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

function written(mode: AccessLogMode, records: readonly AccessRecord[], level: LogLevel = 'info') {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({ level, destination: { write: (line) => void lines.push(JSON.parse(line)) } });
  const write = createAccessLog(logger, mode);
  for (const record of records) write(record);
  return lines.map(({ time: _time, ...rest }) => rest);
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
      duration_ms: 12.346,
      upstream_ms: 11,
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
      plan: 'none',
      client: '203.0.113.7',
      duration_ms: 0.1,
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

it("does not depend on the logger's level", () => expect(written('all', [FORWARDED], 'fatal')).toHaveLength(1));
