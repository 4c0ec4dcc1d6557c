/** What a configuration that somebody has at hand would change, and for whom, without taking anything of it over. */
import { type ConfigChange, configChanges } from '../config/changes.ts';
import type { Config } from '../config/config.ts';
import { countHolders } from './customers.ts';
import { assessImpact, type Impact, type ImpactParts } from './impact.ts';
import { droppedPlans } from './reloader.ts';

/** What a configuration is called that comes without a file. */
export const POSTED_FILE = '(posted)';

export interface Preview {
  readonly runningHash: string;
  readonly hash: string;
  /** What a reload of it would come to now. */
  readonly reload: 'applied' | 'unchanged' | 'restart_required' | 'plan_in_use';
  readonly changes: readonly ConfigChange[];
  /** Plans that it drops, with the number of customers that hold each. */
  readonly droppedPlans: ReadonlyMap<string, number>;
  readonly impact: Impact;
}

/** Rejects with StoreUnavailableError. */
export async function previewConfig(running: Config, next: Config, parts: ImpactParts): Promise<Preview> {
  const changes = configChanges(running, next);
  const dropped = droppedPlans(running, next);
  const holders = dropped.size > 0 ? await countHolders(dropped, parts.records) : new Map<string, number>();
  const impact = await assessImpact(running, next, parts);
  return {
    runningHash: running.hash,
    hash: next.hash,
    reload: reloadOf(changes, holders.size),
    changes,
    droppedPlans: holders,
    impact,
  };
}

function reloadOf(changes: readonly ConfigChange[], plansInUse: number): Preview['reload'] {
  if (changes.length === 0) return 'unchanged';
  if (changes.some(({ takesEffect }) => takesEffect === 'restart')) return 'restart_required';
  return plansInUse > 0 ? 'plan_in_use' : 'applied';
}
