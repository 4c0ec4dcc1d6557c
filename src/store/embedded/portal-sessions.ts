/** Portal sessions, in SQLite. */
import {
  formatPortalSession,
  MAX_PORTAL_SESSIONS,
  PORTAL_CODE_MS,
  PORTAL_WRITES_MS,
  type PortalSessionStore,
  parsePortalSession,
} from '../portal-sessions.ts';
import type { EmbeddedContext } from './database.ts';

type SessionRow = { readonly customer: string; readonly session: string };

export function embeddedPortalSessions({ sql, run, transact, clock }: EmbeddedContext): PortalSessionStore {
  const sessionIn = (row: SessionRow | undefined) => row && parsePortalSession(row.customer, row.session);

  return {
    add: (kind, sha256, session, ttlMs) =>
      transact('add_portal_session', () => {
        const nowMs = clock.nowMs();
        const { customer } = session;
        sql.run`DELETE FROM portal_session WHERE secret_ends_ms <= ${nowMs}`;
        // Leaves room for one more.
        sql.run`
          DELETE FROM portal_session WHERE sha256 IN (
            SELECT sha256 FROM portal_session WHERE customer = ${customer}
            ORDER BY secret_ends_ms DESC LIMIT -1 OFFSET ${MAX_PORTAL_SESSIONS - 1})`;
        const endsMs = nowMs + ttlMs;
        const secretEndsMs = kind === 'code' ? Math.min(nowMs + PORTAL_CODE_MS, endsMs) : endsMs;
        // Inserts nothing if there is no such customer.
        const added = sql.run`
          INSERT INTO portal_session (sha256, kind, customer, session, secret_ends_ms, session_ends_ms)
          SELECT ${sha256}, ${kind}, id, ${formatPortalSession(session)}, ${secretEndsMs}, ${endsMs}
          FROM customer WHERE id = ${customer}`;
        return added === 1;
      }),

    open: (code, cookie) =>
      run('open_portal_session', () =>
        sessionIn(sql.get`
          UPDATE portal_session SET sha256 = ${cookie}, kind = 'cookie', secret_ends_ms = session_ends_ms
          WHERE sha256 = ${code} AND kind = 'code' AND secret_ends_ms > ${clock.nowMs()}
          RETURNING customer, session`),
      ),

    find: (kind, sha256) =>
      run('read_portal_session', () =>
        sessionIn(sql.get`
          SELECT customer, session FROM portal_session
          WHERE sha256 = ${sha256} AND kind = ${kind} AND secret_ends_ms > ${clock.nowMs()}`),
      ),

    end: (sha256) => run('end_portal_session', () => void sql.run`DELETE FROM portal_session WHERE sha256 = ${sha256}`),

    endAll: (customer) =>
      run('end_portal_session', () => void sql.run`DELETE FROM portal_session WHERE customer = ${customer}`),

    countWrite: (customer, id, limit) =>
      transact('count_portal_write', () => {
        const nowMs = clock.nowMs();
        sql.run`DELETE FROM portal_write WHERE customer = ${customer} AND at_ms <= ${nowMs - PORTAL_WRITES_MS}`;
        const { made = 0, firstMs = 0 } =
          sql.get<{ made: number; firstMs: number | null }>`
            SELECT count(*) AS made, min(at_ms) AS firstMs FROM portal_write WHERE customer = ${customer}` ?? {};
        if (made >= limit) return Math.max(1, Number(firstMs) + PORTAL_WRITES_MS - nowMs);
        sql.run`INSERT INTO portal_write (id, customer, at_ms) VALUES (${id}, ${customer}, ${nowMs})`;
        return 0;
      }),
  };
}
