/**
 * Records every change made through the admin API: a log line and an audit entry. Both are written after the change,
 * which is kept even if recording it fails. Lists the audit entries, newest first.
 */
import { isDeepStrictEqual } from 'node:util';
import { AUDIT_ENTRY, RECORDED_CHANGES } from '../../api/admin/responses.ts';
import { snakeCase } from '../../base/camel-case.ts';
import { loggerForAllLevels } from '../../observability/logger.ts';
import type { AuditEntry } from '../../store/audit.ts';
import { documentsOf, isoTime } from '../frame/document-of.ts';
import { factsOf } from '../frame/response-locals.ts';
import type { AdminDependencies, Details, Handlers, RecordChange } from './dependencies.ts';
import { definedMembers, pageOf, withCustomerNames } from './documents.ts';
import { readOn } from './filtered-pages.ts';

export function auditHandlers({ audit, records }: AdminDependencies) {
  return {
    async 'GET /admin/v1/audit'({ query: { cursor, limit, from, to, customer, action } }) {
      const isWanted = (entry: AuditEntry) =>
        (customer === undefined || entry.customer === customer) && (action === undefined || entry.action === action);
      const read = readOn(async (after, rest) => {
        const { items, next } = await audit.list(after, rest, { fromMs: from, toMs: to });
        return { items: items.filter(isWanted), next };
      });
      const page = await read(cursor, limit);
      return pageOf(await withCustomerNames(records, page.items), page);
    },
  } satisfies Partial<Handlers>;
}

const entryDocument = documentsOf(AUDIT_ENTRY.omit({ id: true, customer_name: true }));

export function createChangeRecorder({
  audit,
  logger,
  clock,
}: Pick<AdminDependencies, 'audit' | 'logger' | 'clock'>): RecordChange {
  return async (res, { details = {}, before, ...change }) => {
    const { actor, clientAddress } = factsOf(res);
    const given = auditValues(details);
    const set = before && auditValues(before);
    const former = Object.entries(set ? given : {}).flatMap(([name, value]) => {
      const was = set?.[name] ?? null;
      return was === value ? [] : [[name, was] as const];
    });
    const all = { ...given, ...(actor?.user !== undefined && { user: actor.user }) };
    const entry: AuditEntry = {
      at: isoTime(clock.nowMs()),
      actor: actor?.name ?? 'unknown',
      from: clientAddress,
      ...change,
      ...(Object.keys(all).length > 0 && { details: all }),
      ...(former.length > 0 && { before: Object.fromEntries(former) }),
    };
    const document = entryDocument(entry);
    const { at: _inEachLogLine, ...facts } = document;
    loggerForAllLevels(logger).info(facts, RECORDED_CHANGES[change.action]);
    try {
      await audit.append(entry);
    } catch (error) {
      loggerForAllLevels(logger).error(
        { err: error, audit_entry: document },
        'a change was made but cannot be written to the audit: this line contains the entry',
      );
    }
  };
}

/** Returns the members that are set, named as in the admin API, each as one text, number or flag. */
function auditValues(details: Details) {
  const values = Object.entries(details).map(([name, value]) => {
    const isTime = name.endsWith('Ms') && typeof value === 'number';
    return [snakeCase(name.replace(/Ms$/, '')), isTime ? isoTime(value) : flat(value)];
  });
  return definedMembers(Object.fromEntries(values));
}

function flat(value: Details[string]) {
  if (typeof value !== 'object' || value === null) return value;
  return 'untilMs' in value ? `${value.requestsPerHour} until ${isoTime(value.untilMs)}` : value.join(' ');
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
  return names.every((name) => isDeepStrictEqual(record[name] ?? null, change[name]));
}
