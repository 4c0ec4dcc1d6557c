/**
 * Shares counts of failed keys, by client address block, with the other workers, so that the limit on failures holds for
 * all workers together. Counts are sent in batches, a few times a second; until then, each worker applies its own.
 */
import type { Scheduler } from '../../base/clock.ts';
import type { FailureCounts } from './messages.ts';

const SEND_AFTER_MS = 100;
/** Per message. Further blocks are not shared: counting does not stop an attacker with so many addresses. */
const MAX_BLOCKS = 1000;

/** Returns the function that counts a failure of an address block. */
export function shareFailures(send: (counts: FailureCounts) => void, scheduler: Pick<Scheduler, 'after'>) {
  let counts = new Map<string, number>();
  return (block: string): void => {
    if (counts.size === 0) {
      scheduler.after(SEND_AFTER_MS, () => {
        send([...counts]);
        counts = new Map();
      });
    }
    const counted = counts.get(block);
    if (counted !== undefined || counts.size < MAX_BLOCKS) counts.set(block, (counted ?? 0) + 1);
  };
}
