import { formatMebibytes } from '../../bench/memory.ts';
import { renderTable } from '../../bench/report.ts';
import type { Vitals } from './vitals.ts';

/** One fault, and how the gateway was afterwards. */
export interface Round {
  readonly fault: string;
  /** From the end of the fault until known keys were served and the gateway called itself ready. */
  readonly recoveredMs: number;
  readonly requests: number;
  readonly vitals: Vitals;
}

export interface SoakReport {
  readonly minutes: number;
  readonly workers: number;
  readonly seed: number;
  readonly requests: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly rounds: readonly Round[];
  /** What the gateway did wrong; empty: it passed. */
  readonly problems: readonly string[];
}

export function renderReport({ minutes, workers, requests, outcomes, rounds, problems }: SoakReport): string {
  const table = renderTable({
    head: ['fault', 'recovered ms', 'requests', 'memory MiB', 'heap MiB', 'descriptors', 'handles', 'Redis keys'],
    rows: rounds.map(({ fault, recoveredMs, requests: sent, vitals }) => [
      fault,
      recoveredMs.toFixed(0),
      String(sent),
      formatMebibytes(vitals.memoryBytes),
      formatMebibytes(vitals.heapBytes),
      String(vitals.descriptors),
      String(vitals.handles),
      String(vitals.redisKeys),
    ]),
  });
  const counts = Object.entries(outcomes).map(([name, count]) => `${name} ${count}`);
  const verdict =
    problems.length === 0
      ? 'Passed: every fault was survived; memory, descriptors, handles and Redis keys are flat.'
      : ['FAILED:', ...problems.map((problem) => `- ${problem}`)].join('\n');
  return [
    `${minutes} minutes, ${workers} ${workers === 1 ? 'worker' : 'workers'}, ${requests} requests: ${counts.join(', ')}.`,
    table,
    verdict,
  ].join('\n\n');
}
