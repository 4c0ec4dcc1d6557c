import { describe, expect, it } from 'vitest';
import { choosePinning, parseCpuList } from '../../bench/pinning.ts';

it.each([
  ['0', [0]],
  ['0-3', [0, 1, 2, 3]],
  ['1,4-5', [1, 4, 5]],
])('the CPU list %s names %j', (list, cpus) => {
  expect(parseCpuList(list)).toEqual(cpus);
});

describe('what is measured has a CPU for itself where there are two', () => {
  it('the others are left to the load', () => {
    const { measured, loading, remark } = choosePinning('/usr/bin/taskset', [2, 3, 5]);
    expect(measured).toEqual(['/usr/bin/taskset', '-c', '2']);
    expect(loading).toEqual(['/usr/bin/taskset', '-c', '3,5']);
    expect(remark).toBe('Pinned: the gateway under load to CPU 2; backend, Redis and wrk to CPU 3, 5.');
  });

  it.each([
    ['one CPU', '/usr/bin/taskset', [0], /^Not pinned: there is one CPU/],
    ['no taskset', undefined, [0, 1], /^Not pinned: there is no taskset/],
  ])('with %s the report says that nothing is pinned', (_, taskset, cpus, remark) => {
    expect(choosePinning(taskset, cpus)).toEqual({ measured: [], loading: [], remark: expect.stringMatching(remark) });
  });
});
