/** Shows what a posted config file would change, and for which customers, without applying it. */
import type { Config } from '../../config/config.ts';
import type { Comparison } from '../../config/parser.ts';
import { countByPlan } from './customers.ts';
import { assessImpact, type Impact, type ImpactParts } from './impact.ts';
import { droppedPlans } from './reloader.ts';

/** The name of a posted file in error messages. */
export const POSTED_FILE = '(posted)';

/** Another preview is in progress. */
export class PreviewBusyError extends Error {
  override readonly name = 'PreviewBusyError';
}

export interface Preview extends Omit<Comparison, 'limits' | 'needsRestart'> {
  readonly runningHash: string;
  /** The result if the file were reloaded now, ignoring changes of secrets and in the contents of named files. */
  readonly reload: 'applied' | 'unchanged' | 'restart_required' | 'plan_in_use';
  /** Plans that the file drops although customers are on them, with the number of these customers. */
  readonly droppedPlans: ReadonlyMap<string, number>;
  readonly impact: Impact;
}

interface PreviewerParts extends ImpactParts {
  readonly running: () => Config;
  /** Must not block the event loop. Rejects with ConfigError. */
  readonly compare: (content: Uint8Array, running: Config) => Promise<Comparison>;
}

/**
 * Creates a function that makes one preview at a time, because parsing takes a whole core and every customer is read.
 * It rejects with ConfigError, StoreUnavailableError and {@link PreviewBusyError}.
 */
export function createPreviewer(parts: PreviewerParts): (content: Uint8Array) => Promise<Preview> {
  let busy = false;
  return async (content) => {
    if (busy) throw new PreviewBusyError('another preview is in progress');
    busy = true;
    try {
      const running = parts.running();
      const { limits, needsRestart, ...comparison } = await parts.compare(content, running);
      const absent = droppedPlans(running, limits);
      const isAbsent = (plan: string) => absent.has(plan);
      const dropped = absent.size > 0 ? await countByPlan(isAbsent, parts.records) : new Map<string, number>();
      const refusal = needsRestart ? 'restart_required' : dropped.size > 0 ? 'plan_in_use' : undefined;
      return {
        ...comparison,
        runningHash: running.hash,
        reload: comparison.changesTotal === 0 ? 'unchanged' : (refusal ?? 'applied'),
        droppedPlans: dropped,
        impact: await assessImpact(running, limits, parts),
      };
    } finally {
      busy = false;
    }
  };
}
