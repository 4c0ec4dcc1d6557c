/** The usage history: by customer, by plan, the customers near their limits, and the export for billing. */
import { once } from 'node:events';
import type { Response } from 'express';
import type { CheckedRequestOf } from '../../api/admin/routes.ts';
import { HOUR_ENCODINGS, lastClosedMs } from '../../customers/usage/usage-export.ts';
import { HistoryRangeError, seriesRange, totalsSeries, usageSeries } from '../../customers/usage/usage-series.ts';
import { type CustomerSearch, isFound } from '../../store/customer-search.ts';
import { InvalidCursorError } from '../../store/errors.ts';
import {
  type CustomerHour,
  DAY_MS,
  DEPRECATED_CALLS,
  type HistoryRange,
  type UsageHistory,
} from '../../store/usage-history.ts';
import { hourly } from '../../store/windows.ts';
import { isoTime } from '../frame/document-of.ts';
import { Refusal, requireCustomer } from '../frame/refusal.ts';
import type { AdminContext, Handlers } from './dependencies.ts';
import { customerUsages, definedMembers, pageOf } from './documents.ts';
import { filteredCustomers, searchOf } from './filtered-pages.ts';
import { linkToNext } from './link-to-next.ts';
import { createTurns, type Turns } from './turns.ts';

/** Customers whose last seen usage is checked against the store. Others are left out. */
const MAX_CANDIDATES = 2000;
const CANDIDATES_AT_ONCE = 100;
/** Customers in the index whose usage was seen below this percentage are removed from it. */
const NEAR_PERCENT = 50;
/** Usages read at once. The quota's own calls wait behind them, and a late reply counts as an absent store. */
const USAGES_AT_ONCE = 32;
/** Stored days that are read at once for an export. */
const EXPORT_DAYS_AT_ONCE = 400;

export function usageHistoryHandlers(context: AdminContext) {
  const { records, history } = context;
  const inTurn = createTurns();
  return {
    async 'GET /admin/v1/customers/:id/usage/history'({ id, query }) {
      const { step, range, nowMs, stored } = await readRange(query, history);
      const customer = await requireCustomer(records, id);
      return { customer: customer.id, step, points: await usageSeries(stored, customer.id, step, range, nowMs) };
    },
    async 'GET /admin/v1/usage/history'({ query }) {
      const { step, range, nowMs, stored } = await readRange(query, history);
      return { step, points: await totalsSeries(stored, step, range, nowMs) };
    },
    async 'GET /admin/v1/usage'({ query: { cursor, limit, above, ...filter } }, res) {
      if (above !== undefined) {
        return pageOf(await nearOf({ above, limit, wanted: searchOf(filter, context) }, res), { next: undefined });
      }
      const page = await filteredCustomers(filter, context)(cursor, limit);
      return pageOf(await customerUsages(page.items, context), page);
    },
    async 'GET /admin/v1/usage/near'({ query }, res) {
      const near = await nearOf({ ...query, wanted: undefined }, res);
      return near.map(({ nearest, ...usage }) => ({ ...usage, ...nearest }));
    },
    async 'GET /admin/v1/routes/deprecated/customers'() {
      const calls = (await required(history).deprecated()).slice(0, DEPRECATED_CALLS);
      const ids = [...new Set(calls.map(({ customer }) => customer))];
      const found = new Map(
        (await records.readCustomers(ids)).flatMap((record) => (record ? [[record.id, record]] : [])),
      );
      const items = calls.flatMap((each) => {
        const { name, plan } = found.get(each.customer) ?? {};
        return plan === undefined ? [] : [{ ...each, customerName: name, plan, lastAt: isoTime(each.lastAtMs) }];
      });
      return { items };
    },
    'GET /admin/v1/usage/export': ({ query }, res) => exportUsage(context, inTurn, query, res),
  } satisfies Partial<Handlers>;

  async function nearOf(near: NearQuery, res: Response) {
    const stored = required(history);
    return inTurn(async () => (res.destroyed ? [] : nearCustomers(context, stored, near)));
  }
}

interface NearQuery {
  /** Percent of the limit. */
  readonly above: number;
  readonly limit: number;
  /** Undefined: all customers. */
  readonly wanted: CustomerSearch | undefined;
}

function required(history: UsageHistory | undefined): UsageHistory {
  if (history === undefined) throw new Refusal('unprocessable', 'The usage history is turned off (usage: null).');
  return history;
}

async function readRange(
  { step, from, to }: CheckedRequestOf<'GET /admin/v1/usage/history'>['query'],
  history: UsageHistory | undefined,
) {
  const stored = required(history);
  const nowMs = await stored.nowMs();
  try {
    const range = seriesRange(step, nowMs, definedMembers({ fromMs: from, toMs: to }));
    return { stored, step, nowMs, range };
  } catch (error) {
    if (error instanceof HistoryRangeError) throw new Refusal('unprocessable', error.message);
    throw error;
  }
}

/**
 * Candidates come from the index that all instances maintain, highest last seen usage first; their usage is read from
 * the store. Reads no more of them than the list needs.
 */
async function nearCustomers(context: AdminContext, history: UsageHistory, { above, limit, wanted }: NearQuery) {
  const candidates = (await history.near(MAX_CANDIDATES)).map(({ customer }) => customer);
  const near: CustomerNearLimit[] = [];
  const left: string[] = [];
  for (const piece of piecesOf(candidates, CANDIDATES_AT_ONCE)) {
    if (near.length >= limit) break;
    const found = await usagesOf(context, piece, wanted);
    const percents = new Map(found.map(({ customer, nearest }) => [customer, nearest.percent]));
    left.push(...piece.filter((customer) => (percents.get(customer) ?? 0) < NEAR_PERCENT));
    near.push(...found.filter(({ nearest, isWanted }) => isWanted && nearest.percent >= above));
  }
  if (left.length > 0) await history.noLongerNear(left);
  const worst = near.toSorted((a, b) => b.nearest.percent - a.nearest.percent).slice(0, limit);
  const read = [];
  for (const piece of piecesOf(worst, USAGES_AT_ONCE)) {
    const usages = piece.map(async (usage) => ({ ...usage, resetSeconds: await secondsUntilMore(usage, context) }));
    read.push(...(await Promise.all(usages)));
  }
  return read;
}

/** Resolves to the seconds until the nearest limit has more requests. */
async function secondsUntilMore({ customer, nearest, period }: CustomerNearLimit, { usage, clock }: AdminContext) {
  if (nearest.window !== 'hourly' && period) {
    return Math.max(0, Math.ceil((Date.parse(period.endsAt) - clock.nowMs()) / 1000));
  }
  return (await usage(customer, hourly(nearest.limit))).resetSeconds;
}

/** Yields the items in lists of at most `size`. */
function* piecesOf<Item>(items: readonly Item[], size: number) {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}

type CustomerNearLimit = Awaited<ReturnType<typeof usagesOf>>[number];

/** Usages of the hour below {@link NEAR_PERCENT} may be inexact. Leaves out customers without a limit. */
async function usagesOf(context: AdminContext, ids: readonly string[], wanted: CustomerSearch | undefined) {
  const records = (await context.records.readCustomers(ids)).filter((record) => record !== undefined);
  const usages = await customerUsages(records, context, NEAR_PERCENT);
  return records.flatMap((record, at) => {
    const usage = usages[at];
    if (usage?.nearest === undefined) return [];
    const { nearest } = usage;
    return [{ ...usage, nearest, isWanted: wanted === undefined || isFound(record, wanted) }];
  });
}

/**
 * Streams the closed hours of one page of customers. The cursor of the next page is known before the first line, so it
 * is in the Link header (RFC 8288): an export that was cut off continues with the page that was cut off. The cursor also
 * fixes the end of the range, because the last closed hour may change between two pages.
 */
async function exportUsage(
  { records, history }: AdminContext,
  inTurn: Turns,
  { from, to, cursor, limit, format }: CheckedRequestOf<'GET /admin/v1/usage/export'>['query'],
  res: Response,
): Promise<undefined> {
  const { req } = res;
  const [endMs, customersCursor] = cursor === undefined ? [to] : exportCursor(cursor);
  const stored = required(history);
  const closedMs = lastClosedMs(await stored.nowMs());
  const toMs = Math.min(endMs ?? closedMs, closedMs);
  const range = { fromMs: from ?? toMs - DAY_MS, toMs };
  const page = await inTurn(async () => (res.destroyed ? undefined : records.listCustomers(customersCursor, limit)));
  if (page === undefined) return undefined;
  const { contentType, header, line } = HOUR_ENCODINGS[format];
  res.setHeader('Content-Type', contentType);
  if (page.next !== undefined) res.setHeader('Link', linkToNext(req, `${toMs}.${page.next}`));
  if (req.method === 'HEAD') return void res.end();
  if (header !== undefined && cursor === undefined) res.write(header);
  const ids = page.items.map(({ id }) => id);
  const readHours = (customers: readonly string[]) =>
    inTurn(async () => (res.destroyed ? [] : stored.hours(customers, range)));
  for await (const [customer, hours] of storedHours(readHours, ids, range)) {
    if (res.destroyed) return;
    if (!res.write(hours.map((hour) => line(customer, hour)).join(''))) await drained(res);
  }
  res.end();
}

/** Splits a cursor of an export into the end of its range, wall time in ms, and a cursor of customers. */
function exportCursor(cursor: string): readonly [endMs: number, customersCursor: string] {
  const [, endMs, customersCursor = ''] = /^(\d{1,15})\.(.+)$/.exec(cursor) ?? [];
  if (endMs === undefined) throw new InvalidCursorError();
  return [Number(endMs), customersCursor];
}

async function* storedHours(
  readHours: (customers: readonly string[]) => Promise<readonly (readonly CustomerHour[])[]>,
  customers: readonly string[],
  range: HistoryRange,
) {
  const days = Math.max(1, Math.ceil((range.toMs - range.fromMs) / DAY_MS) + 1);
  const size = Math.max(1, Math.floor(EXPORT_DAYS_AT_ONCE / days));
  for (const piece of piecesOf(customers, size)) {
    const hours = await readHours(piece);
    for (const [at, customer] of piece.entries()) yield [customer, hours[at] ?? []] as const;
  }
}

/** Resolves when the client has read what was written, or is gone. */
async function drained(res: Response): Promise<void> {
  const stop = new AbortController();
  const gone = () => stop.abort();
  res.once('close', gone);
  await once(res, 'drain', { signal: stop.signal }).catch(() => undefined);
  res.off('close', gone);
}
