import { MemoryHash } from '../../src/store/memory-hash.ts';

/** A window in memory, open to inspection. */
export class InspectableHash extends MemoryHash {
  /** As the Redis hash would hold it. */
  fields(): Record<string, string> {
    const buckets = this.buckets().map(([bucket, units]) => [String(bucket), String(units)]);
    const head = this.head();
    return {
      ...Object.fromEntries(buckets),
      ...(head && { head: `${head.epoch} ${head.used} ${head.oldest} ${head.newest} ${head.holdEndMs}` }),
    };
  }
}
