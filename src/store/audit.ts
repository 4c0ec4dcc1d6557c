import type { Page } from './records.ts';

/** One audited admin action: a change, a config preview or a refused access. Never contains the value of an API key. */
export interface AuditEntry {
  /** ISO 8601 UTC. */
  readonly at: string;
  /**
   * `token`, with the name that a person gave after a colon; `jwt:` followed by the subject; `portal:` followed by the
   * customer; or `unknown`.
   */
  readonly actor: string;
  /** The client's address. */
  readonly from: string;
  /** Such as `key.create`. */
  readonly action: string;
  /** The affected customer, if any. */
  readonly customer?: string;
  readonly keyId?: string;
  /** Parameters and results of the action, by the field names of the admin API. */
  readonly details?: AuditValues;
  /** What the members of `details` were before, where they changed. */
  readonly before?: AuditValues;
}

/** By the field names of the admin API. */
type AuditValues = Readonly<Record<string, string | number | boolean | null>>;

/** An append-only log. Entries are never changed, and deleted only when very old or very many. */
export interface AuditStore {
  append(entry: AuditEntry): Promise<void>;
  /**
   * Lists the entries appended within a range of wall times in ms, newest first. Without `fromMs` (inclusive) or `toMs`
   * (exclusive), that side is open. A cursor is valid only with its range. Rejects with {@link InvalidCursorError}.
   */
  list(
    cursor: string | undefined,
    limit: number,
    range?: { readonly fromMs?: number | undefined; readonly toMs?: number | undefined },
  ): Promise<Page<AuditEntry & { readonly id: string }>>;
}
