import type { WindowHash, WindowHead } from './window-arithmetic.ts';

/** A window in memory, for quotas while the store is unavailable and for simulations. */
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
}
