/** Which CPU a process runs on: what is measured has one for itself, what loads it has the others. */
import { readFileSync } from 'node:fs';

export interface Pinning {
  /** What a command of the measured side begins with. */
  readonly measured: readonly string[];
  /** And one of the side that loads it: backend, Redis, wrk. */
  readonly loading: readonly string[];
  /** For the report. */
  readonly remark: string;
}

export function choosePinning(taskset: string | undefined, cpus: readonly number[]): Pinning {
  const [first, ...others] = cpus;
  const unpinned = { measured: [], loading: [] };
  if (others.length === 0) {
    return { ...unpinned, remark: 'Not pinned: there is one CPU, which the gateways share with their load.' };
  }
  if (taskset === undefined) return { ...unpinned, remark: 'Not pinned: there is no taskset.' };
  return {
    measured: [taskset, '-c', String(first)],
    loading: [taskset, '-c', others.join(',')],
    remark: `Pinned: the gateway under load to CPU ${first}; backend, Redis and wrk to CPU ${others.join(', ')}.`,
  };
}

/** The CPUs that this process may use, by number. */
export function allowedCpus(): number[] {
  const [, list = ''] = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return parseCpuList(list);
}

/** `0-2,5` as numbers (the list format of cpuset(7)). */
export function parseCpuList(list: string): number[] {
  return list.split(',').flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}
