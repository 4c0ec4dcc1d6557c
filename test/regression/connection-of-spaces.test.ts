/**
 * A backend that sent a Connection header with thousands of spaces stopped the gateway for ten seconds with each response:
 * the search for header names in it tried every way to divide the spaces.
 */
import { expect, test } from 'vitest';
import { createResponseFilter } from '../../src/upstream/response-headers.ts';

const SPACES = ' '.repeat(32_000);
/** Hundreds of times what it takes. */
const MAX_CPU_MS = 500;

test.each([
  ['nothing', '', '\r\nX: 1\r\nETag: "1"'],
  ['close', 'close', '\r\nX: 1\r\nETag: "1"'],
  ['a name', 'x', '\r\nETag: "1"'],
  ['close and a name', `close${SPACES},${SPACES}x`, '\r\nETag: "1"'],
  ['tabs', '\t'.repeat(1000), '\r\nX: 1\r\nETag: "1"'],
])('a Connection header of spaces around %s is read in one pass', (_, value, passed) => {
  const passedLines = createResponseFilter(new Set());
  const before = process.cpuUsage();
  expect(passedLines(`\r\nConnection:${SPACES}${value}${SPACES}\r\nX: 1\r\nETag: "1"`, 200)).toBe(passed);
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(MAX_CPU_MS);
});
