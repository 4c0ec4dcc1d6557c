export interface NotedUse {
  readonly keyId: string;
  /** The digest of the key; without it, the key is taken to exist. */
  readonly sha256?: string;
  /** Wall time in ms. */
  readonly usedAtMs: number;
}

/**
 * When keys were last used, to about a minute. Stored apart from the key records, so that a use does not invalidate
 * cached records.
 */
export interface KeyUseStore {
  /** Records the given uses, except those that are not later than the recorded ones, and those of deleted keys. */
  noteUses(uses: readonly NotedUse[]): Promise<void>;
  /** Resolves to wall times in ms, in the order of `keyIds`; undefined for a key that was never used. */
  lastUses(keyIds: readonly string[]): Promise<readonly (number | undefined)[]>;
}
