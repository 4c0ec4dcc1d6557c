/** The usage history in SQLite. */
import {
  type CustomerCount,
  type CustomerDay,
  customerHours,
  DAY_MS,
  DEPRECATED_DAYS,
  type DeprecatedCalls,
  HOUR_MS,
  mergedCalls,
  NEAR_CUSTOMERS,
  type NearCustomer,
  type PlanCount,
  planHours,
  REQUESTS,
  type UsageHistory,
  type UsageRetention,
} from '../usage-history.ts';
import type { EmbeddedContext } from './database.ts';
import type { Sql } from './sql.ts';

/**
 * Returns a function that adds units to a customer's hour and day, or subtracts as many as the hour has, and returns how
 * many it added. Call it only inside a transaction. `hour`: the number of hours since 1970.
 */
export function historyWriter(sql: Sql): (customer: string, hour: number, units: number) => number {
  return (customer, hour, units) => {
    const stored =
      units < 0 &&
      sql.get<{ count: number }>`
        SELECT count FROM usage_hour WHERE customer = ${customer} AND hour = ${hour} AND code = ''`;
    const added = units < 0 ? Math.max(units, -(stored ? stored.count : 0)) : units;
    if (added === 0) return 0;
    const day = Math.floor(hour / 24);
    sql.run`
      INSERT INTO usage_hour (customer, hour, code, count) VALUES (${customer}, ${hour}, '', ${added})
      ON CONFLICT DO UPDATE SET count = count + excluded.count`;
    sql.run`
      INSERT INTO usage_day (customer, day, units) VALUES (${customer}, ${day}, ${added})
      ON CONFLICT DO UPDATE SET units = max(0, units + excluded.units)`;
    if (added > 0) return added;
    sql.run`DELETE FROM usage_hour WHERE customer = ${customer} AND hour = ${hour} AND count <= 0`;
    sql.run`DELETE FROM usage_day WHERE customer = ${customer} AND day = ${day} AND units <= 0 AND requests = 0`;
    return added;
  };
}

export function embeddedUsageHistory(context: EmbeddedContext, retention: UsageRetention): UsageHistory {
  const { sql, run, transact, clock } = context;
  let sweptHour = 0;

  /** Deletes what is older than the retention, once an hour. */
  function sweep(): void {
    const nowMs = clock.nowMs();
    const hour = Math.floor(nowMs / HOUR_MS);
    if (hour === sweptHour) return;
    sweptHour = hour;
    sql.run`DELETE FROM usage_hour WHERE hour < ${hour - retention.hoursDays * 24}`;
    sql.run`DELETE FROM usage_total WHERE hour < ${hour - retention.hoursDays * 24}`;
    sql.run`DELETE FROM deprecated_calls WHERE day <= ${Math.floor(nowMs / DAY_MS) - DEPRECATED_DAYS}`;
    sql.run`DELETE FROM usage_day WHERE day < ${Math.floor(nowMs / DAY_MS) - retention.days}`;
  }

  return {
    hours: (customers, { fromMs, toMs }) =>
      run('read_history', () =>
        customers.map((customer) =>
          customerHours(sql.all<CustomerCount>`
            SELECT hour * ${HOUR_MS} AS hourMs, code, count FROM usage_hour
            WHERE customer = ${customer} AND hour >= ${Math.ceil(fromMs / HOUR_MS)} AND hour < ${Math.ceil(toMs / HOUR_MS)}`),
        ),
      ),

    days: (customer, { fromMs, toMs }) =>
      run(
        'read_history',
        () => sql.all<CustomerDay>`
          SELECT day * ${DAY_MS} AS startMs, units, requests FROM usage_day
          WHERE customer = ${customer} AND day >= ${Math.floor(fromMs / DAY_MS)} AND day < ${Math.ceil(toMs / DAY_MS)}
            AND units + requests > 0 ORDER BY day`,
      ),

    totals: ({ fromMs, toMs }) =>
      run('read_history', () =>
        planHours(sql.all<PlanCount>`
          SELECT hour * ${HOUR_MS} AS hourMs, plan, what, count FROM usage_total
          WHERE hour >= ${Math.ceil(fromMs / HOUR_MS)} AND hour < ${Math.ceil(toMs / HOUR_MS)}`),
      ),

    add: ({ counts, totals, near, deprecated = [] }) =>
      transact('add_usage', () => {
        sweep();
        for (const { customer, hourMs, code, count } of counts) {
          sql.run`
            INSERT INTO usage_hour (customer, hour, code, count)
            SELECT id, ${hourMs / HOUR_MS}, ${code}, ${count} FROM customer WHERE id = ${customer}
            ON CONFLICT DO UPDATE SET count = count + excluded.count`;
          if (code !== REQUESTS) continue;
          sql.run`
            INSERT INTO usage_day (customer, day, units, requests)
            SELECT id, ${Math.floor(hourMs / DAY_MS)}, 0, ${count} FROM customer WHERE id = ${customer}
            ON CONFLICT DO UPDATE SET requests = requests + excluded.requests`;
        }
        for (const { plan, hourMs, what, count } of totals) {
          sql.run`
            INSERT INTO usage_total (hour, plan, what, count) VALUES (${hourMs / HOUR_MS}, ${plan}, ${what}, ${count})
            ON CONFLICT DO UPDATE SET count = count + excluded.count`;
        }
        for (const { customer, percent } of near) {
          sql.run`
            INSERT OR REPLACE INTO near_limit (customer, percent) SELECT id, ${percent} FROM customer WHERE id = ${customer}`;
        }
        for (const { customer, route, count, gone, lastAtMs } of deprecated) {
          sql.run`
            INSERT INTO deprecated_calls (day, customer, route, count, gone, last_ms)
            SELECT ${Math.floor(lastAtMs / DAY_MS)}, id, ${route}, ${count}, ${gone}, ${Math.floor(lastAtMs)}
            FROM customer WHERE id = ${customer}
            ON CONFLICT DO UPDATE SET
              count = count + excluded.count, gone = gone + excluded.gone, last_ms = max(last_ms, excluded.last_ms)`;
        }
        if (near.length > 0) {
          sql.run`
            DELETE FROM near_limit WHERE customer IN (
              SELECT customer FROM near_limit ORDER BY percent DESC LIMIT -1 OFFSET ${NEAR_CUSTOMERS})`;
        }
      }),

    near: (limit) =>
      run(
        'read_history',
        () => sql.all<NearCustomer>`SELECT customer, percent FROM near_limit ORDER BY percent DESC LIMIT ${limit}`,
      ),

    refused: async () => [],

    deprecated: (of) =>
      run('read_history', () => {
        const calls = sql.all<DeprecatedCalls>`
          SELECT customer, route, count, gone, last_ms AS lastAtMs FROM deprecated_calls
          WHERE day > ${Math.floor(clock.nowMs() / DAY_MS) - DEPRECATED_DAYS}`;
        const isWanted = ({ customer, route }: DeprecatedCalls) =>
          of?.customer === customer && of.routes.includes(route);
        return mergedCalls(of === undefined ? calls : calls.filter(isWanted));
      }),

    noLongerNear: (customers) =>
      transact('add_usage', () => {
        for (const customer of customers) sql.run`DELETE FROM near_limit WHERE customer = ${customer}`;
      }),

    nowMs: async () => clock.nowMs(),
  };
}
