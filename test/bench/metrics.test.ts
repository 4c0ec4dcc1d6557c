import { expect, it } from 'vitest';
import { countBy, sumCounter } from '../../bench/metrics.ts';

it('a counter is summed over its labels, and not with others whose name begins alike', () => {
  const exposition = `# TYPE calls_total counter
calls_total{op="read_key"} 3
calls_total{op="reserve"} 4
calls_total_other 100
`;
  expect(sumCounter(exposition, 'calls_total')).toBe(7);
  expect(sumCounter(exposition, 'calls')).toBe(0);
});

it('a counter is broken down by one label, summed over the others', () => {
  const exposition = `requests_total{route="/a",code="200",barcode="1"} 3
requests_total{route="/b",code="200",barcode="2"} 4
requests_total{route="/b",code="503",barcode="3"} 1
`;
  expect(countBy(exposition, 'requests_total', 'code')).toEqual(
    new Map([
      ['200', 7],
      ['503', 1],
    ]),
  );
});
