import type { WindowHash, WindowHead } from '../../src/store/window-arithmetic.ts';

/** A window in memory, open to inspection. */
export class MemoryHash implements WindowHash {
  readonly #buckets = new Map<number, number>();
  #head: WindowHead | undefined;

  head(): WindowHead | undefined {
    return this.#head;
  }

  setHead(head: WindowHead): void {
    this.#head = { ...head };
  }

  units(bucket: number): number | undefined {
    return this.#buckets.get(bucket);
  }

  add(bucket: number, units: number): void {
    this.#buckets.set(bucket, (this.#buckets.get(bucket) ?? 0) + units);
  }

  delete(bucket: number): void {
    this.#buckets.delete(bucket);
  }

  buckets(): [number, number][] {
    return [...this.#buckets];
  }

  /** As the Redis hash would hold it. */
  fields(): Record<string, string> {
    const buckets = [...this.#buckets].map(([bucket, units]) => [String(bucket), String(units)]);
    const head = this.#head;
    return {
      ...Object.fromEntries(buckets),
      ...(head && { head: `${head.epoch} ${head.used} ${head.oldest} ${head.newest} ${head.holdEndMs}` }),
    };
  }
}
