/**
 * Records every change made through the admin API: a log line and an audit entry. Both are written after the change,
 * which is kept even if recording it fails.
 */
import type { Response } from 'express';
import type { AuditAction } from '../admin-api/responses.ts';
import type { Clock } from '../base/clock.ts';
import { type Logger, loggerForAllLevels } from '../observability/logger.ts';
import type { AuditEntry, AuditStore } from '../store/store.ts';
import { actorOf } from './actor.ts';
import { auditDocument } from './documents.ts';
import { peerAddressOf } from './peer-address.ts';

/** The log message of each action. */
const MESSAGES: Readonly<Record<Exclude<AuditAction, 'access.refused'>, string>> = {
  'customer.create': 'customer created',
  'customer.update': 'customer updated',
  'customer.delete': 'customer deleted',
  'usage.reset': 'usage reset',
  'key.create': 'key created',
  'key.import': 'key imported',
  'key.update': 'key updated',
  'key.revoke': 'key revoked',
  'key.rotate': 'key rotated',
  'config.reload': 'configuration reloaded by a call',
  'config.preview': 'configuration file previewed',
};

export interface Change {
  readonly action: keyof typeof MESSAGES;
  readonly customer?: string;
  readonly keyId?: string;
  /** As named in the admin API; undefined members are omitted. */
  readonly details?: Readonly<Record<string, string | number | boolean | null | undefined>>;
}

/** Never rejects: the change is already made, and an error response would make the client repeat it. */
export type RecordChange = (res: Response, change: Change) => Promise<void>;

export function createChangeRecorder({
  audit,
  logger,
  clock,
}: {
  readonly audit: Pick<AuditStore, 'append'>;
  readonly logger: Logger;
  readonly clock: Clock;
}): RecordChange {
  return async (res, { action, customer, keyId, details }) => {
    const given = definedMembers(details ?? {});
    const entry: AuditEntry = {
      at: new Date(clock.nowMs()).toISOString(),
      actor: actorOf(res).name,
      from: peerAddressOf(res),
      action,
      ...(customer !== undefined && { customer }),
      ...(keyId !== undefined && { keyId }),
      ...(Object.keys(given).length > 0 && { details: given }),
    };
    const { at: _loggedAnyway, ...facts } = auditDocument(entry);
    loggerForAllLevels(logger).info(facts, MESSAGES[action]);
    try {
      await audit.append(entry);
    } catch (error) {
      const lost = { err: error, audit_entry: auditDocument(entry) };
      loggerForAllLevels(logger).error(
        lost,
        'a change was made but cannot be written to the audit: this line has the entry',
      );
    }
  };
}

/**
 * Returns whether the record already has the values of the change. Such a change needs no write and no audit entry:
 * otherwise repeating it would fill the audit log.
 */
export function changesNothing<Change extends object>(
  record: { readonly [Name in keyof Change]?: unknown },
  change: Change,
): boolean {
  const names = Object.keys(change) as (keyof Change)[];
  return names.every((name) => (record[name] ?? null) === change[name]);
}

function definedMembers<Value>(members: Readonly<Record<string, Value | undefined>>): Record<string, Value> {
  const given = Object.entries(members).filter((member): member is [string, Value] => member[1] !== undefined);
  return Object.fromEntries(given);
}
