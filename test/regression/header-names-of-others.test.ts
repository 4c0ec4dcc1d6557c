/**
 * The first 512 spellings of header names were cached for the life of the process, whoever sent them. Six requests with
 * a hundred made-up names each filled that cache, and from then on header processing took more than three times as long
 * for every customer, until the gateway was restarted.
 */
import { expect, test } from 'vitest';
import { requestHead } from '../../src/upstream/http1/upstream-connection.ts';
import { headerPolicy, passedHeaders } from '../../src/upstream/request-headers.ts';
import { createResponseFilter } from '../../src/upstream/response-headers.ts';
import { linesOf } from '../upstream/support/header-lines.ts';

const POLICY = headerPolicy({ credentials: 'strip', preserveHost: false }, ['Authorization']);
const REQUESTS = 200;
const ROUNDS = 40;
const HEADERS = 16;
const passedLines = createResponseFilter(new Set());

/** Flat headers as a parser returns them: each name is a new string. */
function headers(prefix: string): string[] {
  const text = Array.from({ length: HEADERS }, (_, i) => `${prefix}-${i},value`).join(',');
  return Buffer.from(text).toString('latin1').split(',');
}

function process(rawHeaders: string[]): void {
  requestHead('GET', '/', 'backend.test', passedHeaders(rawHeaders, POLICY));
  passedLines(linesOf(rawHeaders), 200);
}

function roundMs(prefix: string): number {
  const startedAt = performance.now();
  for (let i = 0; i < REQUESTS; i++) process(headers(prefix));
  return performance.now() - startedAt;
}

test('made-up header names of one client do not make the headers of others slower', () => {
  const [early, later] = ['X-Early-Customer', 'X-Later-Customer'];
  for (let round = 0; round < ROUNDS; round++) roundMs(early);
  for (let i = 0; i < 100; i++) process(headers(`X-Made-Up-${i}`));
  // By turns, and the fastest round counts: whatever else the machine does slows down both.
  const fastestMs = { early: Infinity, later: Infinity };
  for (let round = 0; round < ROUNDS; round++) {
    fastestMs.early = Math.min(fastestMs.early, roundMs(early));
    fastestMs.later = Math.min(fastestMs.later, roundMs(later));
  }
  expect(fastestMs.later).toBeLessThan(2 * fastestMs.early);
});
