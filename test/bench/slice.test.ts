import { describe, expect, it } from 'vitest';
import type { LoadResult } from '../../bench/load.ts';
import { expectBody, loadFault, responseFault } from '../../bench/slice.ts';

const ANSWER_BYTES = 900;
const CONNECTIONS = 64;
const RIGHT: LoadResult = {
  requests: 1000,
  bytes: 1000 * ANSWER_BYTES,
  micros: 1_000_000,
  refused: 0,
  connect: 0,
  read: 0,
  write: 0,
  timeout: 0,
  p50: 1,
  p99: 1,
  p999: 1,
};

function faultOf(load: Partial<LoadResult>, refused = false): string | undefined {
  return loadFault({ ...RIGHT, ...load }, { responseBytes: ANSWER_BYTES, connections: CONNECTIONS, refused });
}

describe('a slice counts only when every response can have been correct', () => {
  it('correct responses', () => {
    expect(faultOf({})).toBeUndefined();
  });

  it('correct responses, and a part of another one on every connection at the end', () => {
    expect(faultOf({ bytes: (1000 + CONNECTIONS) * ANSWER_BYTES - 1 })).toBeUndefined();
  });

  it.each([
    ['no response at all', { requests: 0, bytes: 0 }, 'no request got a response'],
    ['a connection was refused', { connect: 1 }, 'socket errors: 1 connect, 0 read, 0 write, 0 timeout'],
    ['an answer broke off', { read: 2 }, 'socket errors: 0 connect, 2 read, 0 write, 0 timeout'],
    ['one response was a refusal', { refused: 1 }, '1 of 1000 responses were refusals'],
    ['responses were cut short', { bytes: 500_000 }, '1000 responses had 500 bytes each, where one request got 900'],
    ['responses were too long', { bytes: 1_200_000 }, '1000 responses had 1200 bytes each, where one request got 900'],
  ])('%s', (_, load, fault) => {
    expect(faultOf(load)).toBe(fault);
  });
});

describe('a flood of refusals counts only when nothing was forwarded', () => {
  it('all were refused', () => {
    expect(faultOf({ refused: 1000 }, true)).toBeUndefined();
  });

  it('one was not', () => {
    expect(faultOf({ refused: 999 }, true)).toBe('999 of 1000 responses were refusals');
  });
});

describe("one response is compared with the backend's", () => {
  const expected = expectBody(Buffer.from('{"data":[]}'));
  it.each([
    [200, '{"data":[]}', undefined],
    [200, '{"data":[', "a response is wrong: its body of 9 bytes is not the backend's"],
    [502, '{"data":[]}', 'a request got 502, not 200'],
  ])('%i %s', (status, body, fault) => {
    expect(responseFault({ status, body: Buffer.from(body), bytes: 200 }, expected)).toBe(fault);
  });
});
