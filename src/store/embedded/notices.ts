/** Notices in SQLite. */
import type { StatementSync } from 'node:sqlite';
import { MAX_DEAD_NOTICES, type NoticeState, type NoticeStore, type StoredNotice } from '../notices.ts';
import { type EmbeddedContext, inTransaction } from './database.ts';

export function embeddedNotices({ database, run, transact, clock }: EmbeddedContext): NoticeStore {
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
  const setMark = database.prepare(
    `INSERT INTO notice_mark (customer, mark, until_ms) VALUES (?, ?, ?)
     ON CONFLICT (customer, mark) DO UPDATE SET until_ms = excluded.until_ms`,
  );
  const selectGone = database.prepare('SELECT url FROM gone_endpoint');
  const addGone = database.prepare('INSERT INTO gone_endpoint (url) VALUES (?) ON CONFLICT DO NOTHING');
  const removeGone = database.prepare('DELETE FROM gone_endpoint WHERE url = ?');
  const pagesBy = (column: 'due_ms' | 'dead_ms') =>
    database.prepare(
      `SELECT id, customer, content FROM notice WHERE ${column} IS NOT NULL ORDER BY ${column}, id LIMIT ? OFFSET ?`,
    );
  const selectPage: Readonly<Record<NoticeState, StatementSync>> = {
    pending: pagesBy('due_ms'),
    dead: pagesBy('dead_ms'),
  };
  const selectCounts = database.prepare(
    `SELECT (SELECT count(*) FROM notice WHERE due_ms IS NOT NULL) AS pending,
       (SELECT count(*) FROM notice WHERE dead_ms IS NOT NULL) AS dead`,
  );
  const counts = (customer: string, mark: string, nowMs: number) => selectMark.get(customer, mark, nowMs) !== undefined;

  return {
    addOnce: ({ customer, marks, untilMs, notice }) =>
      transact('claim_notice', () => {
        const nowMs = clock.nowMs();
        if (counts(customer, marks[0], nowMs)) return false;
        dropMarks.run(customer, nowMs);
        for (const mark of marks) setMark.run(customer, mark, untilMs);
        insert.run({ customer, ...notice, nowMs });
        return true;
      }),

    extend: ({ customer, marks, untilMs }) =>
      transact('claim_notice', () => {
        const counting = marks.filter((mark) => counts(customer, mark, clock.nowMs()));
        for (const mark of counting) setMark.run(customer, mark, untilMs);
        return counting[0] === marks[0];
      }),

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
      transact('settle_notice', () => {
        if (next === undefined) return remove.run({ id, content }).changes > 0;
        const nowMs = clock.nowMs();
        const dueMs = next.dueInMs === undefined ? null : nowMs + next.dueInMs;
        const isDead = Number(next.isDead);
        const { changes } = update.run({ id, content, next: next.content, dueMs, isDead, nowMs });
        if (next.isDead) dropOldestDead.run(MAX_DEAD_NOTICES);
        return changes > 0;
      }),

    list: (state, offset, limit) =>
      run('read_notices', () => {
        const rows = selectPage[state].all(limit + 1, offset) as unknown as StoredNotice[];
        return { items: rows.slice(0, limit), nextOffset: rows.length > limit ? offset + limit : undefined };
      }),

    counts: () => run('read_notices', () => selectCounts.get() as Record<NoticeState, number>),

    goneEndpoints: () => run('read_notices', () => new Set(selectGone.all().map(({ url }) => String(url)))),

    setGone: (url, isGone) =>
      run('settle_notice', () => {
        (isGone ? addGone : removeGone).run(url);
      }),
  };
}
