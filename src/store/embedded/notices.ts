/** Notices in SQLite. */
import { MAX_DEAD_NOTICES, type NoticeState, type NoticeStore, type StoredNotice } from '../notices.ts';
import type { EmbeddedContext } from './database.ts';

export function embeddedNotices({ database, sql, run, transact, clock }: EmbeddedContext): NoticeStore {
  const counts = (customer: string, mark: string, nowMs: number): boolean =>
    sql.get`
      SELECT 1 FROM notice_mark WHERE customer = ${customer} AND mark = ${mark} AND until_ms > ${nowMs}` !== undefined;
  const setMark = (customer: string, mark: string, untilMs: number) =>
    sql.run`INSERT OR REPLACE INTO notice_mark (customer, mark, until_ms) VALUES (${customer}, ${mark}, ${untilMs})`;

  return {
    addOnce: ({ customer, marks, untilMs, notice: { id, content } }) =>
      transact('claim_notice', () => {
        const nowMs = clock.nowMs();
        if (counts(customer, marks[0], nowMs)) return false;
        sql.run`DELETE FROM notice_mark WHERE customer = ${customer} AND until_ms <= ${nowMs}`;
        for (const mark of marks) setMark(customer, mark, untilMs);
        sql.run`INSERT INTO notice (id, customer, content, due_ms) VALUES (${id}, ${customer}, ${content}, ${nowMs})`;
        return true;
      }),

    extend: ({ customer, marks, untilMs }) =>
      transact('claim_notice', () => {
        const counting = marks.filter((mark) => counts(customer, mark, clock.nowMs()));
        for (const mark of counting) setMark(customer, mark, untilMs);
        return counting[0] === marks[0];
      }),

    takeDue: (limit, hiddenMs) =>
      transact('take_notices', () => {
        const nowMs = clock.nowMs();
        const due = sql.all<StoredNotice>`
          SELECT id, customer, content FROM notice WHERE due_ms <= ${nowMs} ORDER BY due_ms LIMIT ${limit}`;
        for (const { id } of due) sql.run`UPDATE notice SET due_ms = ${nowMs + hiddenMs} WHERE id = ${id}`;
        return due;
      }),

    replace: ({ id, content }, next) =>
      transact('settle_notice', () => {
        if (next === undefined) return sql.run`DELETE FROM notice WHERE id = ${id} AND content = ${content}` > 0;
        const nowMs = clock.nowMs();
        const dueMs = next.dueInMs === undefined ? null : nowMs + next.dueInMs;
        const changes = sql.run`
          UPDATE notice SET content = ${next.content}, due_ms = ${dueMs},
            dead_ms = iif(${Number(next.isDead)}, coalesce(dead_ms, ${nowMs}), NULL)
          WHERE id = ${id} AND content = ${content}`;
        if (next.isDead) {
          sql.run`
            DELETE FROM notice WHERE id IN (
              SELECT id FROM notice WHERE dead_ms IS NOT NULL ORDER BY dead_ms DESC LIMIT -1 OFFSET ${MAX_DEAD_NOTICES})`;
        }
        return changes > 0;
      }),

    list: (state, offset, limit) =>
      run('read_notices', () => {
        const time = state === 'pending' ? 'due_ms' : 'dead_ms';
        const select = `SELECT id, customer, content FROM notice WHERE ${time} IS NOT NULL ORDER BY ${time}, id`;
        const rows = database.prepare(`${select} LIMIT ? OFFSET ?`).all(limit + 1, offset) as unknown as StoredNotice[];
        return { items: rows.slice(0, limit), nextOffset: rows.length > limit ? offset + limit : undefined };
      }),

    counts: () =>
      run('read_notices', () => {
        const counted = sql.get<Record<NoticeState, number>>`
          SELECT (SELECT count(*) FROM notice WHERE due_ms IS NOT NULL) AS pending,
            (SELECT count(*) FROM notice WHERE dead_ms IS NOT NULL) AS dead`;
        return counted ?? { pending: 0, dead: 0 };
      }),

    goneEndpoints: () =>
      run('read_notices', () => new Set(sql.all<{ url: string }>`SELECT url FROM gone_endpoint`.map(({ url }) => url))),

    setGone: (url, isGone) =>
      run('settle_notice', () => {
        if (isGone) sql.run`INSERT OR IGNORE INTO gone_endpoint (url) VALUES (${url})`;
        else sql.run`DELETE FROM gone_endpoint WHERE url = ${url}`;
      }),
  };
}
