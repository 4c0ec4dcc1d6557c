/** The usage history in SQLite. */
import type { DatabaseSync } from 'node:sqlite';
import {
  type CustomerCount,
  type CustomerDay,
  customerHours,
  DAY_MS,
  HOUR_MS,
  NEAR_CUSTOMERS,
  type NearCustomer,
  type PlanCount,
  planHours,
  type UsageHistory,
  type UsageRetention,
} from '../usage-history.ts';
import type { EmbeddedContext } from './database.ts';

/** The value of `code` in rows that count requests; others count refusals. */
const REQUESTS = '';

/**
 * Returns a function that adds units to a customer's hour and day, or subtracts as many as the hour has. Call it only
 * inside a transaction. `hour`: the number of hours since 1970.
 */
export function historyWriter(database: DatabaseSync): (customer: string, hour: number, units: number) => void {
  const addHour = database.prepare(
    `INSERT INTO usage_hour (customer, hour, code, count) VALUES (:customer, :hour, '${REQUESTS}', :units)
     ON CONFLICT (customer, hour, code) DO UPDATE SET count = count + excluded.count`,
  );
  const addDay = database.prepare(
    `INSERT INTO usage_day (customer, day, requests) VALUES (:customer, :day, :units)
     ON CONFLICT (customer, day) DO UPDATE SET requests = max(0, requests + excluded.requests)`,
  );
  const selectHour = database.prepare(
    `SELECT count FROM usage_hour WHERE customer = ? AND hour = ? AND code = '${REQUESTS}'`,
  );
  const deleteHour = database.prepare('DELETE FROM usage_hour WHERE customer = ? AND hour = ? AND count <= 0');
  const deleteDay = database.prepare('DELETE FROM usage_day WHERE customer = ? AND day = ? AND requests <= 0');
  return (customer, hour, units) => {
    const added = units < 0 ? Math.max(units, -Number(selectHour.get(customer, hour)?.count ?? 0)) : units;
    if (added === 0) return;
    const day = Math.floor(hour / 24);
    addHour.run({ customer, hour, units: added });
    addDay.run({ customer, day, units: added });
    if (added > 0) return;
    deleteHour.run(customer, hour);
    deleteDay.run(customer, day);
  };
}

export function embeddedUsageHistory(context: EmbeddedContext, retention: UsageRetention): UsageHistory {
  const { database, run, transact, clock } = context;
  const selectHours = database.prepare(
    `SELECT hour * ${HOUR_MS} AS hourMs, code, count FROM usage_hour WHERE customer = ? AND hour >= ? AND hour < ?`,
  );
  const selectDays = database.prepare(
    `SELECT day * ${DAY_MS} AS startMs, requests FROM usage_day WHERE customer = ? AND day >= ? AND day < ? AND requests > 0 ORDER BY day`,
  );
  const selectTotals = database.prepare(
    `SELECT hour * ${HOUR_MS} AS hourMs, plan, what, count FROM usage_total WHERE hour >= ? AND hour < ?`,
  );
  const addHour = database.prepare(
    `INSERT INTO usage_hour (customer, hour, code, count) SELECT id, ?, ?, ? FROM customer WHERE id = ?
     ON CONFLICT (customer, hour, code) DO UPDATE SET count = count + excluded.count`,
  );
  const addTotal = database.prepare(
    `INSERT INTO usage_total (hour, plan, what, count) VALUES (?, ?, ?, ?)
     ON CONFLICT (hour, plan, what) DO UPDATE SET count = count + excluded.count`,
  );
  const setNear = database.prepare(
    'INSERT OR REPLACE INTO near_limit (customer, percent) SELECT id, ? FROM customer WHERE id = ?',
  );
  const trimNear = database.prepare(
    'DELETE FROM near_limit WHERE customer IN (SELECT customer FROM near_limit ORDER BY percent DESC LIMIT -1 OFFSET ?)',
  );
  const selectNear = database.prepare('SELECT customer, percent FROM near_limit ORDER BY percent DESC LIMIT ?');
  const deleteNear = database.prepare('DELETE FROM near_limit WHERE customer = ?');
  const expired = [
    database.prepare('DELETE FROM usage_hour WHERE hour < ?'),
    database.prepare('DELETE FROM usage_total WHERE hour < ?'),
  ];
  const expiredDays = database.prepare('DELETE FROM usage_day WHERE day < ?');
  let sweptHour = 0;

  /** Deletes what is older than the retention, once an hour. */
  function sweep(): void {
    const nowMs = clock.nowMs();
    const hour = Math.floor(nowMs / HOUR_MS);
    if (hour === sweptHour) return;
    sweptHour = hour;
    for (const each of expired) each.run(hour - retention.hoursDays * 24);
    expiredDays.run(Math.floor(nowMs / DAY_MS) - retention.days);
  }

  return {
    hours: (customers, { fromMs, toMs }) =>
      run('read_history', () =>
        customers.map((customer) => {
          const counts = selectHours.all(customer, Math.ceil(fromMs / HOUR_MS), Math.ceil(toMs / HOUR_MS));
          return customerHours(counts as unknown as CustomerCount[]);
        }),
      ),

    days: (customer, { fromMs, toMs }) =>
      run('read_history', () => {
        const days = selectDays.all(customer, Math.floor(fromMs / DAY_MS), Math.ceil(toMs / DAY_MS));
        return days as unknown as CustomerDay[];
      }),

    totals: ({ fromMs, toMs }) =>
      run('read_history', () => {
        const counts = selectTotals.all(Math.ceil(fromMs / HOUR_MS), Math.ceil(toMs / HOUR_MS));
        return planHours(counts as unknown as PlanCount[]);
      }),

    add: ({ refusals, totals, near }) =>
      transact('add_usage', () => {
        sweep();
        for (const { customer, hourMs, code, count } of refusals) addHour.run(hourMs / HOUR_MS, code, count, customer);
        for (const { plan, hourMs, what, count } of totals) addTotal.run(hourMs / HOUR_MS, plan, what, count);
        for (const { customer, percent } of near) setNear.run(percent, customer);
        if (near.length > 0) trimNear.run(NEAR_CUSTOMERS);
      }),

    near: (limit) => run('read_history', () => selectNear.all(limit) as unknown as NearCustomer[]),

    refused: async () => [],

    noLongerNear: (customers) =>
      transact('add_usage', () => {
        for (const customer of customers) deleteNear.run(customer);
      }),

    nowMs: async () => clock.nowMs(),
  };
}
