/** Notices in SQLite. */
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../base/clock.ts';
import { type ClaimedLevel, claimLevels, rearmLevels, WATCH_MS } from '../level-claims.ts';
import { MAX_DEAD_NOTICES, type NoticeState, type NoticeStore, type StoredNotice } from '../notices.ts';
import { inTransaction, type RunOperation } from './database.ts';

interface EmbeddedNoticesOptions {
  readonly database: DatabaseSync;
  readonly run: RunOperation;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** The column that is set while a notice is in this state: when it is due, and when it was given up. */
const COLUMNS: Readonly<Record<NoticeState, string>> = { pending: 'due_ms', dead: 'dead_ms' };

export function embeddedNotices({ database, run, clock }: EmbeddedNoticesOptions): NoticeStore {
  const claims = storedClaims(database);
  const insert = database.prepare(
    'INSERT INTO notice (id, customer, content, due_ms) VALUES (:id, :customer, :content, :nowMs)',
  );
  const selectDue = database.prepare(
    'SELECT id, customer, content FROM notice WHERE due_ms <= ? ORDER BY due_ms LIMIT ?',
  );
  const hide = database.prepare('UPDATE notice SET due_ms = ? WHERE id = ?');
  const remove = database.prepare('DELETE FROM notice WHERE id = :id AND content = :content');
  const update = database.prepare(
    `UPDATE notice SET content = :next, due_ms = :dueMs, dead_ms = CASE WHEN :isDead THEN coalesce(dead_ms, :nowMs) END
     WHERE id = :id AND content = :content`,
  );
  const dropOldestDead = database.prepare(
    'DELETE FROM notice WHERE id IN (SELECT id FROM notice WHERE dead_ms IS NOT NULL ORDER BY dead_ms DESC LIMIT -1 OFFSET ?)',
  );
  const dropMarks = database.prepare('DELETE FROM notice_mark WHERE customer = ? AND until_ms <= ?');
  const selectMark = database.prepare('SELECT 1 FROM notice_mark WHERE customer = ? AND mark = ? AND until_ms > ?');
  const addMark = database.prepare('INSERT INTO notice_mark (customer, mark, until_ms) VALUES (?, ?, ?)');
  const selectGone = database.prepare('SELECT url FROM gone_endpoint');
  const addGone = database.prepare('INSERT INTO gone_endpoint (url) VALUES (?) ON CONFLICT DO NOTHING');
  const removeGone = database.prepare('DELETE FROM gone_endpoint WHERE url = ?');
  const inState = (select: (column: string) => string) => ({
    pending: database.prepare(select(COLUMNS.pending)),
    dead: database.prepare(select(COLUMNS.dead)),
  });
  const selectPage = inState(
    (column) =>
      `SELECT id, customer, content FROM notice WHERE ${column} IS NOT NULL ORDER BY ${column}, id LIMIT ? OFFSET ?`,
  );
  const count = inState((column) => `SELECT count(*) AS count FROM notice WHERE ${column} IS NOT NULL`);
  const countOf = (state: NoticeState) => Number(count[state].get()?.count);

  return {
    claimLevel: ({ customer, notice, ...reached }) =>
      run('claim_notice', () =>
        inTransaction(database, () => {
          const nowMs = clock.nowMs();
          const ofCustomer = claims.of(customer);
          const isNew = claimLevels(ofCustomer, reached, nowMs);
          claims.replace(customer, ofCustomer, nowMs + WATCH_MS);
          if (isNew) insert.run({ customer, ...notice, nowMs });
          return isNew;
        }),
      ),

    addOnce: ({ customer, mark, markUntilMs, notice }) =>
      run('claim_notice', () =>
        inTransaction(database, () => {
          const nowMs = clock.nowMs();
          if (selectMark.get(customer, mark, nowMs) !== undefined) return false;
          dropMarks.run(customer, nowMs);
          addMark.run(customer, mark, markUntilMs);
          insert.run({ customer, ...notice, nowMs });
          return true;
        }),
      ),

    takeDue: (limit, hiddenMs) =>
      run('take_notices', () => {
        const nowMs = clock.nowMs();
        const due = selectDue.all(nowMs, limit) as unknown as StoredNotice[];
        if (due.length === 0) return [];
        return inTransaction(database, () => {
          for (const { id } of due) hide.run(nowMs + hiddenMs, id);
          return due;
        });
      }),

    replace: ({ id, content }, next) =>
      run('settle_notice', () =>
        inTransaction(database, () => {
          if (next === undefined) return remove.run({ id, content }).changes > 0;
          const nowMs = clock.nowMs();
          const dueMs = next.dueInMs === undefined ? null : nowMs + next.dueInMs;
          const isDead = Number(next.isDead);
          const { changes } = update.run({ id, content, next: next.content, dueMs, isDead, nowMs });
          if (next.isDead) dropOldestDead.run(MAX_DEAD_NOTICES);
          return changes > 0;
        }),
      ),

    list: (state, offset, limit) =>
      run('read_notices', () => {
        const rows = selectPage[state].all(limit + 1, offset) as unknown as StoredNotice[];
        return { items: rows.slice(0, limit), nextOffset: rows.length > limit ? offset + limit : undefined };
      }),

    counts: () => run('read_notices', () => ({ pending: countOf('pending'), dead: countOf('dead') })),

    takeWatched: (limit) => run('take_notices', () => claims.takeWatched(clock.nowMs(), limit)),

    rearm: (customer, usage) =>
      run('settle_notice', () =>
        inTransaction(database, () => {
          const nowMs = clock.nowMs();
          const ofCustomer = usage === undefined ? new Map<number, ClaimedLevel>() : claims.of(customer);
          const waitMs = usage && rearmLevels(ofCustomer, usage, nowMs);
          claims.replace(customer, ofCustomer, nowMs + (waitMs ?? 0));
        }),
      ),

    goneEndpoints: () => run('read_notices', () => new Set(selectGone.all().map(({ url }) => String(url)))),

    setGone: (url, isGone) =>
      run('settle_notice', () => {
        (isGone ? addGone : removeGone).run(url);
      }),
  };
}

/** The claimed levels of customers. Call these methods inside a transaction if the result of one decides another. */
function storedClaims(database: DatabaseSync) {
  const select = database.prepare(
    'SELECT level, "limit", former_limit, claimed_at_ms, fell FROM level_claim WHERE customer = ?',
  );
  const removeAll = database.prepare('DELETE FROM level_claim WHERE customer = ?');
  const insert = database.prepare(
    'INSERT INTO level_claim (customer, level, "limit", former_limit, claimed_at_ms, fell, look_ms) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const selectWatched = database.prepare('SELECT DISTINCT customer FROM level_claim WHERE look_ms <= ? LIMIT ?');
  const hide = database.prepare('UPDATE level_claim SET look_ms = ? WHERE customer = ?');
  return {
    of: (customer: string) =>
      new Map(
        select.all(customer).map((row): [number, ClaimedLevel] => [
          Number(row.level),
          {
            limit: Number(row.limit),
            formerLimit: Number(row.former_limit),
            claimedAtMs: Number(row.claimed_at_ms),
            fell: row.fell === 1,
          },
        ]),
      ),
    /** `lookMs`: when usage is compared with the claimed levels. */
    replace(customer: string, claims: ReadonlyMap<number, ClaimedLevel>, lookMs: number): void {
      removeAll.run(customer);
      for (const [level, { limit, formerLimit, claimedAtMs, fell }] of claims) {
        insert.run(customer, level, limit, formerLimit, claimedAtMs, Number(fell), lookMs);
      }
    },
    takeWatched(nowMs: number, limit: number): string[] {
      const customers = selectWatched.all(nowMs, limit).map(({ customer }) => String(customer));
      for (const customer of customers) hide.run(nowMs + WATCH_MS, customer);
      return customers;
    },
  };
}
