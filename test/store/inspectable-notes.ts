import type { GrantNotes, StoredGrant } from '../../src/store/grants.ts';

/** The grants of one customer in memory, open to inspection. */
export class InspectableNotes implements GrantNotes {
  readonly #notes = new Map<string, StoredGrant>();

  get(id: string): StoredGrant | undefined {
    return this.#notes.get(id);
  }

  set(id: string, grant: StoredGrant): void {
    this.#notes.set(id, grant);
  }

  delete(id: string): void {
    this.#notes.delete(id);
  }

  /** As the Redis hash would hold them. */
  fields(): Record<string, string> {
    const texts = [...this.#notes].map(([id, { granted, returned, hour, bucket, epochs, anchor }]) => {
      const counters = [...epochs, ...(anchor === undefined ? [] : [anchor])].join(' ') || '-';
      return [id, `${granted} ${returned} ${hour} ${bucket} ${counters}`] as const;
    });
    return Object.fromEntries(texts);
  }
}
