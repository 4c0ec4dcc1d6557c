import { availableParallelism } from 'node:os';
import type { Config } from '../config/config.ts';

/** How many processes are to serve callers. */
export function workerCount({ workers }: Pick<Config, 'workers'>): number {
  return workers === 'auto' ? availableParallelism() : workers;
}
