import { expect, it } from 'vitest';
import { parseLoadResult } from '../../bench/load.ts';

const RESULT = {
  requests: 132197,
  bytes: 19828890,
  micros: 1499431,
  refused: 3,
  connect: 0,
  read: 1,
  write: 0,
  timeout: 2,
  p50: 36,
  p99: 162,
  p999: 301,
};

const OUTPUT = `Running 10s test @ http://127.0.0.1:9555/
  1 threads and 4 connections
  132197 requests in 1.50s, 18.91MB read
Transfer/sec:     12.61MB
${JSON.stringify(RESULT)}
`;

it('the exact numbers are read from the end of what wrk prints', () => {
  expect(parseLoadResult(OUTPUT)).toEqual(RESULT);
});

it('a failed run of wrk is an error with the output of wrk', () => {
  expect(() => parseLoadResult('unable to connect to 127.0.0.1:1 Connection refused')).toThrow(/unable to connect/);
});

it('a result that lacks a number is an error', () => {
  expect(() => parseLoadResult('{"requests":1}')).toThrow(/bytes/);
});
