import type { RecordFault } from './record-faults.ts';

export type StoreOp =
  | 'read_key'
  | 'read_customer'
  | 'create_customer'
  | 'create_key'
  | 'read_key_id'
  | 'revoke_key'
  | 'reset_usage'
  | 'list_customers'
  | 'update_customer'
  | 'delete_customer'
  | 'list_keys'
  | 'list_customer_keys'
  | 'update_key'
  | 'retire_key'
  | 'discard_key'
  | 'reindex'
  | 'inspect'
  | 'note_uses'
  | 'read_uses'
  | 'read_usages'
  | 'read_history'
  | 'add_usage'
  | 'add_failed_requests'
  | 'read_failed_requests'
  | 'claim_notice'
  | 'take_notices'
  | 'settle_notice'
  | 'read_notices'
  | 'rotate_notify_secret'
  | 'read_notify_secret'
  | 'add_portal_session'
  | 'open_portal_session'
  | 'read_portal_session'
  | 'end_portal_session'
  | 'count_portal_write'
  | 'read_maintenance'
  | 'write_maintenance'
  | 'append_audit'
  | 'read_audit'
  | 'reserve'
  | 'refund'
  | 'report'
  | 'announce'
  | 'withdraw'
  | 'initialise';

/** Receives every store call and every change of availability. Implementations never throw. */
export interface StoreObserver {
  called(op: StoreOp, durationSeconds: number, failed: boolean): void;
  up(up: boolean, reason?: string): void;
  /** The store began to refuse quota writes for `reason`, or accepts them again (undefined). */
  refusing?(reason: string | undefined): void;
  /**
   * A reservation failed because the customer's stored window is damaged. `reply` is rate-limited: undefined if one was
   * passed for this customer recently.
   */
  damagedWindow?(customer: string, reply: string | undefined): void;
  /**
   * A malformed record was read that another program wrote. `isReported` is rate-limited per record: true if the fault
   * should be logged.
   */
  damagedRecord?(damage: RecordDamage, isReported: boolean): void;
}

export interface RecordDamage {
  readonly kind: 'key' | 'customer';
  /** Identifies the record for operators. Contains neither the API key nor its whole hash. */
  readonly record: string;
  readonly fault: RecordFault;
  /** From the record, if valid there. */
  readonly keyId?: string;
  readonly customer?: string;
}
