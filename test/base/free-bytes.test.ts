import { expect, test } from 'vitest';
import { freeBytes } from '../../src/base/free-bytes.ts';

test('frees the memory of large bytes', () => {
  const bytes = Buffer.alloc(64 * 1024);
  const { buffer } = bytes;
  freeBytes(bytes);
  expect(buffer.byteLength).toBe(0);
});

test('leaves memory that others may use as well, and what the garbage collector frees for less', () => {
  const whole = Buffer.alloc(64 * 1024, 1);
  const shared = Buffer.from(new SharedArrayBuffer(64 * 1024));
  for (const bytes of [whole.subarray(1), whole.subarray(0, 32 * 1024), Buffer.alloc(100), shared]) {
    freeBytes(bytes);
    expect(bytes.buffer.byteLength).toBeGreaterThan(0);
  }
  expect(whole.at(-1)).toBe(1);
});
