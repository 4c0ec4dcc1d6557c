/**
 * The usage history in Redis, in a format that other programs may read. Units are counted by the scripts of
 * the quota; this file reads the history and adds what instances collected.
 */
import type { StoreOp } from '../../observer.ts';
import {
  type CustomerCount,
  customerHours,
  DAY_MS,
  DEPRECATED_CALLS,
  DEPRECATED_DAYS,
  type DeprecatedCalls,
  dayName,
  daysIn,
  HOUR_MS,
  hourName,
  isTimeMs,
  isWithin,
  mergedCalls,
  NEAR_CUSTOMERS,
  type PlanCount,
  planHours,
  REFUSED_CUSTOMERS,
  REQUESTS,
  TOTALS,
  type UsageHistory,
  type UsageRetention,
} from '../../usage-history.ts';
import { inPieces, type RedisChannel, sendAll, sendEach, storeTimeMs } from '../connection/channel.ts';
import { type Command, hashFrom, pairsFrom } from '../connection/client.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';

const READ: StoreOp = 'read_history';
const ADD: StoreOp = 'add_usage';
/** Hashes that are read at once; each has at most some hundred fields. */
const HASHES = 100;
const HOUR_FIELD = /^([01]\d|2[0-3])(?::(.+))?$/;
/** A year of daily sums is kept until this many days after the last sum in it must be. */
const DAYS_OF_YEAR = 366;

/** Must be called before the first command is sent on the connection, because it defines a command. */
export function redisUsageHistory(channel: RedisChannel, names: RedisKeyNames, retention: UsageRetention) {
  const addCount = channel.client.defineScript(new URL('./add-count.lua', import.meta.url), 2);
  const addDeprecated = channel.client.defineScript(new URL('./add-deprecated.lua', import.meta.url), 1);
  const { hoursDays } = retention;
  const keptYearsDays = retention.days + DAYS_OF_YEAR;
  const readPiece = async (hashes: readonly string[]) => {
    return (await sendEach(channel, READ, hashes, (name) => ['hgetall', name])).map(hashFrom);
  };
  const readHashes = (hashes: readonly string[]) => inPieces(hashes, readPiece, HASHES);

  /** Removes customers from the lists of those who were refused, or are near their limits. */
  const unlist = async (op: StoreOp, customers: ReadonlySet<string>) => {
    if (customers.size === 0) return;
    const members = await channel.run(op, (redis) => redis.zrevrange(names.refused, 0, -1));
    const refused = members.filter((member) => customers.has(member.split(' ', 1)[0] ?? ''));
    await sendAll(channel, op, [
      ...refused.map((member) => ['zrem', names.refused, member] as const),
      ...Array.from(customers, (customer) => ['zrem', names.near, customer] as const),
    ]);
  };

  /** The days of which calls of deprecated routes are kept, as names of hashes. */
  const deprecatedDays = async (op: StoreOp) => {
    const toMs = await storeTimeMs(channel, op);
    const range = { fromMs: toMs - (DEPRECATED_DAYS - 1) * DAY_MS, toMs };
    return daysIn(range, DEPRECATED_DAYS).map((dayMs) => names.deprecated(dayName(dayMs)));
  };

  const history: UsageHistory = {
    async hours(customers, range) {
      const days = daysIn(range, hoursDays);
      const daysOfCustomers = customers.flatMap((customer) =>
        days.map((dayMs) => names.usageDay(customer, dayName(dayMs))),
      );
      const hashes = await readHashes(daysOfCustomers);
      return customers.map((_, at) => {
        const counts = days.flatMap((dayMs, day) =>
          customerCountsFrom(hashes[at * days.length + day] ?? new Map(), dayMs),
        );
        return customerHours(counts.filter(({ hourMs }) => isWithin(hourMs, range)));
      });
    },

    async days(customer, range) {
      const days = daysIn(range, keptYearsDays);
      const years = yearsOf(days);
      const hashes = await readHashes(years.map((year) => names.usageYear(customer, year)));
      return days.flatMap((startMs) => {
        const year = hashes[years.indexOf(yearName(startMs))];
        const day = dayName(startMs).slice(4);
        const [units, requests] = [countFrom(year?.get(day)), countFrom(year?.get(`${day}:${REQUESTS}`))];
        return units + requests > 0 ? [{ startMs, units, requests }] : [];
      });
    },

    async totals(range) {
      const days = daysIn(range, hoursDays);
      const hashes = await readHashes(days.map((dayMs) => names.usageTotal(dayName(dayMs))));
      const counts = days.flatMap((dayMs, at) => planCountsFrom(hashes[at] ?? new Map(), dayMs));
      return planHours(counts.filter(({ hourMs }) => isWithin(hourMs, range)));
    },

    async add({ counts, totals, near, deprecated = [], atMs }) {
      const commands: Command[] = [];
      const expiryMs = (hourMs: number, days = 1 + hoursDays) => (Math.floor(hourMs / DAY_MS) + days) * DAY_MS;
      await inPieces(counts, (piece) =>
        channel.run(ADD, () =>
          Promise.all(
            piece.flatMap(({ customer, hourMs, code, count }) => {
              const [record, day] = [names.customerRecord(customer), dayName(hourMs)];
              const name = names.usageDay(customer, day);
              const added = addCount(record, name, expiryMs(hourMs), `${hourName(hourMs)}:${code}`, count);
              if (code !== REQUESTS) return added;
              const year = names.usageYear(customer, yearName(hourMs));
              return [added, addCount(record, year, expiryMs(hourMs, keptYearsDays), `${day.slice(4)}:${code}`, count)];
            }),
          ),
        ),
      );
      const refusals = counts.filter(({ code }) => code !== REQUESTS);
      const expiries = new Map<string, number>();
      for (const { plan, hourMs, what, count } of totals) {
        const name = names.usageTotal(dayName(hourMs));
        commands.push(['hincrby', name, `${hourName(hourMs)}:${plan}:${what}`, count]);
        expiries.set(name, expiryMs(hourMs));
      }
      for (const [name, atMs] of expiries) commands.push(['pexpireat', name, atMs]);
      if (refusals.length > 0) {
        const name = names.refused;
        for (const { customer, code, hourMs } of refusals) {
          commands.push(['zadd', name, atMs ?? hourMs, `${customer} ${code}`]);
        }
        commands.push(['zremrangebyrank', name, 0, -REFUSED_CUSTOMERS - 1]);
        commands.push(['pexpire', name, DAY_MS]);
      }
      for (const [dayMs, calls] of Map.groupBy(deprecated, ({ lastAtMs }) => Math.floor(lastAtMs / DAY_MS) * DAY_MS)) {
        const name = names.deprecated(dayName(dayMs));
        const untilMs = dayMs + (DEPRECATED_DAYS + 1) * DAY_MS;
        await inPieces(calls, async (piece) => {
          const args = piece.flatMap(({ customer, route, count, gone, lastAtMs }) => {
            return [`${customer} ${route}`, count, gone, Math.floor(lastAtMs)];
          });
          await channel.run(ADD, () => addDeprecated(name, DEPRECATED_CALLS, untilMs, ...args));
          return [];
        });
      }
      if (near.length > 0) {
        const name = names.near;
        commands.push(['zadd', name, ...near.flatMap(({ customer, percent }) => [percent, customer])]);
        commands.push(['zremrangebyrank', name, 0, -NEAR_CUSTOMERS - 1]);
      }
      await sendAll(channel, ADD, commands);
      // Checked after the write: a deletion marks the record first, so one of the two sees the other's write.
      const customers = [...new Set([...refusals, ...near].map(({ customer }) => customer))];
      const plans = await sendEach(channel, ADD, customers, (customer) => [
        'hget',
        names.customerRecord(customer),
        'plan',
      ]);
      await unlist(ADD, new Set(customers.filter((_, at) => !plans[at])));
    },

    async near(limit) {
      const reply = await channel.run(READ, (redis) => redis.zrevrange(names.near, 0, limit - 1, 'WITHSCORES'));
      return pairsFrom(reply).map(([customer, percent]) => ({ customer, percent: Number(percent) }));
    },

    async refused(sinceMs, limit) {
      const reply = await channel.run(READ, (redis) => redis.zrevrange(names.refused, 0, limit - 1, 'WITHSCORES'));
      return pairsFrom(reply).flatMap(([member, score]) => {
        const [customer = '', code] = member.split(' ');
        const lastAtMs = Number(score);
        const isValid = code !== undefined && isTimeMs(lastAtMs);
        return isValid && lastAtMs >= sinceMs ? [{ customer, code, lastAtMs }] : [];
      });
    },

    async deprecated(of) {
      const days = await deprecatedDays(READ);
      if (of === undefined)
        return mergedCalls((await readHashes(days)).flatMap((fields) => [...fields].flatMap(callsFrom)));
      const fields = of.routes.map((route) => `${of.customer} ${route}`);
      const replies = await sendEach(channel, READ, days, (name) => ['hmget', name, ...fields]);
      return mergedCalls(
        replies.flatMap((values) =>
          fields.flatMap((field, at) => callsFrom([field, String((values as unknown[])?.[at])])),
        ),
      );
    },

    async noLongerNear(customers) {
      await sendEach(channel, ADD, customers, (customer) => ['zrem', names.near, customer]);
    },

    nowMs: () => storeTimeMs(channel, READ),
  };

  return {
    ...history,
    /** Deletes everything of a customer. */
    async forget(op: StoreOp, customer: string): Promise<void> {
      const range = { fromMs: 0, toMs: (await storeTimeMs(channel, op)) + DAY_MS };
      const days = daysIn(range, hoursDays + 1);
      const years = yearsOf(daysIn(range, keptYearsDays));
      await sendAll(channel, op, [
        ...days.map((dayMs) => ['del', names.usageDay(customer, dayName(dayMs))] as const),
        ...years.map((year) => ['del', names.usageYear(customer, year)] as const),
      ]);
      await unlist(op, new Set([customer]));
      const deprecated = await deprecatedDays(op);
      const calls = (await readHashes(deprecated)).map((fields) => [...fields.keys()].filter(isOf(customer)));
      await sendAll(
        channel,
        op,
        deprecated.flatMap((name, at) => (calls[at]?.length ? [['hdel', name, ...calls[at]] as const] : [])),
      );
    },
  };
}

function yearsOf(days: readonly number[]): string[] {
  return [...new Set(days.map(yearName))];
}

function yearName(ms: number): string {
  return dayName(ms).slice(0, 4);
}

/** Fields that do not fit the format are ignored: other programs may have written them. */
function customerCountsFrom(fields: ReadonlyMap<string, string>, dayMs: number): CustomerCount[] {
  return Array.from(fields).flatMap(([field, value]) => {
    const [, hour, code = ''] = HOUR_FIELD.exec(field) ?? [];
    return hour === undefined ? [] : [{ hourMs: dayMs + Number(hour) * HOUR_MS, code, count: countFrom(value) }];
  });
}

function planCountsFrom(fields: ReadonlyMap<string, string>, dayMs: number): PlanCount[] {
  return Array.from(fields).flatMap(([field, value]) => {
    const [, hour, rest = ''] = HOUR_FIELD.exec(field) ?? [];
    const end = rest.lastIndexOf(':');
    const [plan, what] = [rest.slice(0, end), TOTALS.find((total) => total === rest.slice(end + 1))];
    if (hour === undefined || end < 1 || what === undefined) return [];
    return [{ plan, hourMs: dayMs + Number(hour) * HOUR_MS, what, count: countFrom(value) }];
  });
}

/** Returns whether a field of the calls of deprecated routes is of the customer. */
const isOf = (customer: string) => (field: string) => field.startsWith(`${customer} `);

/** `<customer> <route>` and `<count> <gone> <last in ms>`. */
function callsFrom([field, value]: readonly [string, string]): DeprecatedCalls[] {
  const [customer = '', route = ''] = field.split(' ', 2);
  const [, count, gone, lastAtMs] = /^(\d+) (\d+) (\d+)$/.exec(value) ?? [];
  const isValid = route !== '' && isTimeMs(Number(lastAtMs));
  return isValid
    ? [{ customer, route, count: countFrom(count), gone: countFrom(gone), lastAtMs: Number(lastAtMs) }]
    : [];
}

function countFrom(value: string | undefined): number {
  const count = Number(value);
  return Number.isSafeInteger(count) && count > 0 ? count : 0;
}
