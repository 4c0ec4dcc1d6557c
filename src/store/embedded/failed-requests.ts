/** Failed requests in SQLite. Columns have the names and meanings of the members in Redis. */
import {
  type FailedRequest,
  type FailedRequestStore,
  failedRequestFrom,
  failedRequestPage,
  requestBefore,
  roomAfterDeletion,
  surplusOf,
  TEXTS,
} from '../failed-requests.ts';
import { fieldsOf } from '../record-fields.ts';
import { HOUR_MS } from '../usage-history.ts';
import type { EmbeddedContext } from './database.ts';

type StoredRequest = Parameters<typeof failedRequestFrom>[0] & { readonly at_ms: number };

const NAMES = Object.values(TEXTS);

export function embeddedFailedRequests({ database, sql, run, transact, clock }: EmbeddedContext): FailedRequestStore {
  const insert = database.prepare(
    `INSERT OR REPLACE INTO failed_request (${NAMES.join(', ')}, at_ms, status, duration_ms)
     VALUES (${NAMES.map((name) => `:${name}`).join(', ')}, :at_ms, :status, :duration_ms)`,
  );
  const nulls = Object.fromEntries(NAMES.map((name) => [name, null]));
  return {
    add: (requests, bounds) =>
      transact('add_failed_requests', () => {
        for (const request of requests) {
          const { atMs, status, durationMs = null } = request;
          insert.run({ ...nulls, ...fieldsOf(TEXTS, request), at_ms: atMs, status, duration_ms: durationMs });
        }
        sql.run`DELETE FROM failed_request WHERE at_ms <= ${clock.nowMs() - bounds.hours * HOUR_MS}`;
        const count = sql.get<{ count: number }>`SELECT count(*) AS count FROM failed_request`?.count ?? 0;
        if (count <= bounds.entries) return;
        const stored = sql.all<Pick<FailedRequest, 'id'> & { customer: string | null; client: string | null }>`
          SELECT id, customer, client FROM failed_request ORDER BY at_ms DESC, id DESC`;
        const senders = stored.map(({ id, customer, client }) => {
          return { id, customer: customer ?? undefined, client: client ?? undefined };
        });
        for (const { id } of surplusOf(senders, roomAfterDeletion(bounds))) {
          sql.run`DELETE FROM failed_request WHERE id = ${id}`;
        }
      }),

    list: async ({ sinceMs, customer = null, code = null }, cursor, limit) => {
      const { atMs, id } = cursor === undefined ? { atMs: Number.MAX_SAFE_INTEGER, id: '' } : requestBefore(cursor);
      return run('read_failed_requests', () => {
        const rows = sql.all<StoredRequest>`
          SELECT * FROM failed_request
          WHERE at_ms >= ${sinceMs} AND (at_ms, id) < (${atMs}, ${id})
            AND (${customer} IS NULL OR customer = ${customer}) AND (${code} IS NULL OR code = ${code})
          ORDER BY at_ms DESC, id DESC LIMIT ${limit + 1}`;
        return failedRequestPage(rows.flatMap(requestFrom), limit);
      });
    },

    find: (requestId, sinceMs, limit) =>
      run('read_failed_requests', () =>
        sql.all<StoredRequest>`
          SELECT * FROM failed_request WHERE request_id = ${requestId} AND at_ms >= ${sinceMs}
          ORDER BY at_ms DESC, id DESC LIMIT ${limit}`.flatMap(requestFrom),
      ),

    nowMs: async () => clock.nowMs(),
  };
}

function requestFrom(row: StoredRequest): FailedRequest | [] {
  return failedRequestFrom(row, row.at_ms) ?? [];
}
