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

export function embeddedPortalSessions({ database, run, transact, clock }: EmbeddedContext): PortalSessionStore {
  const deleteEnded = database.prepare('DELETE FROM portal_session WHERE secret_ends_ms <= ?');
  /** Leaves room for one more. */
  const deleteSurplus = database.prepare(
    `DELETE FROM portal_session WHERE sha256 IN (
       SELECT sha256 FROM portal_session WHERE customer = ? ORDER BY secret_ends_ms DESC LIMIT -1 OFFSET ?)`,
  );
  // Inserts nothing if there is no such customer.
  const insert = database.prepare(
    `INSERT INTO portal_session (sha256, kind, customer, session, secret_ends_ms, session_ends_ms)
     SELECT :sha256, :kind, id, :session, :secretEndsMs, :sessionEndsMs FROM customer WHERE id = :customer`,
  );
  const open = database.prepare(
    `UPDATE portal_session SET sha256 = :cookie, kind = 'cookie', secret_ends_ms = session_ends_ms
     WHERE sha256 = :code AND kind = 'code' AND secret_ends_ms > :nowMs RETURNING customer, session`,
  );
  const select = database.prepare(
    'SELECT customer, session FROM portal_session WHERE sha256 = ? AND kind = ? AND secret_ends_ms > ?',
  );
  const end = database.prepare('DELETE FROM portal_session WHERE sha256 = ?');
  const endAll = database.prepare('DELETE FROM portal_session WHERE customer = ?');
  const forgetWrites = database.prepare('DELETE FROM portal_write WHERE customer = ? AND at_ms <= ?');
  const writes = database.prepare(
    'SELECT count(*) AS made, min(at_ms) AS firstMs FROM portal_write WHERE customer = ?',
  );
  const addWrite = database.prepare('INSERT INTO portal_write (id, customer, at_ms) VALUES (?, ?, ?)');
  const sessionIn = (row: Readonly<Record<string, unknown>> | undefined) =>
    row && parsePortalSession(String(row.customer), String(row.session));

  return {
    add: (kind, sha256, session, ttlMs) =>
      transact('add_portal_session', () => {
        const nowMs = clock.nowMs();
        const { customer } = session;
        deleteEnded.run(nowMs);
        deleteSurplus.run(customer, MAX_PORTAL_SESSIONS - 1);
        const sessionEndsMs = nowMs + ttlMs;
        const secretEndsMs = kind === 'code' ? Math.min(nowMs + PORTAL_CODE_MS, sessionEndsMs) : sessionEndsMs;
        const text = formatPortalSession(session);
        return insert.run({ sha256, kind, customer, session: text, secretEndsMs, sessionEndsMs }).changes === 1;
      }),

    open: (code, cookie) =>
      run('open_portal_session', () => sessionIn(open.get({ code, cookie, nowMs: clock.nowMs() }))),

    find: (kind, sha256) => run('read_portal_session', () => sessionIn(select.get(sha256, kind, clock.nowMs()))),

    end: (sha256) => run('end_portal_session', () => void end.run(sha256)),

    endAll: (customer) => run('end_portal_session', () => void endAll.run(customer)),

    countWrite: (customer, id, limit) =>
      transact('count_portal_write', () => {
        const nowMs = clock.nowMs();
        forgetWrites.run(customer, nowMs - PORTAL_WRITES_MS);
        const { made, firstMs } = writes.get(customer) ?? {};
        if (Number(made) >= limit) return Math.max(1, Number(firstMs) + PORTAL_WRITES_MS - nowMs);
        addWrite.run(id, customer, nowMs);
        return 0;
      }),
  };
}
