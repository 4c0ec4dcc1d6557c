import { availableParallelism } from 'node:os';
import type { Config } from '../config/config.ts';

/** Returns the number of worker processes; `auto` is one per core. */
export function workerCount({ workers }: Pick<Config, 'workers'>): number {
  return workers === 'auto' ? availableParallelism() : workers;
}
