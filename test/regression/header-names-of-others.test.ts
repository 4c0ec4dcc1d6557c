/**
 * The first 512 spellings of header names were cached for the life of the process, whoever sent them. Six requests with
 * a hundred made-up names each filled that cache, and from then on header processing took more than three times as long
 * for every customer, until the gateway was restarted.
 */
import { threadCpuUsage } from 'node:process';
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

function handle(rawHeaders: string[]): void {
  requestHead('GET', '/', 'backend.test', passedHeaders(rawHeaders, POLICY));
  passedLines(linesOf(rawHeaders), 200);
}

/** In CPU time: what else the machine does may take turns with one of the two. */
function roundMicros(prefix: string): number {
  const before = threadCpuUsage();
  for (let i = 0; i < REQUESTS; i++) handle(headers(prefix));
  const { user, system } = threadCpuUsage(before);
  return user + system;
}

test('made-up header names of one client do not make the headers of others slower', () => {
  const [early, later] = ['X-Early-Customer', 'X-Later-Customer'];
  for (let round = 0; round < ROUNDS; round++) roundMicros(early);
  for (let i = 0; i < 100; i++) handle(headers(`X-Made-Up-${i}`));
  // By turns, and all rounds together: the system counts CPU time in steps of some milliseconds.
  const micros = { early: 0, later: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    micros.early += roundMicros(early);
    micros.later += roundMicros(later);
  }
  expect(micros.later).toBeLessThan(2 * micros.early);
});
