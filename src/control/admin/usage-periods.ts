/**
 * What customers used in days and months that are over, for billing.
 *
 * A page has all periods of its customers, unless one customer has more than fit. The cursor names what was listed last, and
 * no position: customers may be created and deleted between two pages.
 */
import type { CheckedRequestOf } from '../../api/admin/routes.ts';
import { idOf, PERIOD_ENCODINGS } from '../../customers/usage/usage-export.ts';
import { isoTime } from '../../customers/usage/usage-series.ts';
import { InvalidCursorError } from '../../store/errors.ts';
import { byEnd, type StoredPeriod } from '../../store/period-reader.ts';
import type { CustomerRecord } from '../../store/record-fields.ts';
import { type HistoryRange, isWithin } from '../../store/usage-history.ts';
import { TextReply } from '../frame/routes.ts';
import type { AdminContext, Handlers } from './dependencies.ts';
import { pageOf } from './documents.ts';
import { type ReadPage, readOn } from './filtered-pages.ts';
import { linkToNext } from './link-to-next.ts';
import { createTurns } from './turns.ts';

/** Customers whose periods are read at once. */
const CUSTOMERS_AT_ONCE = 100;
/** If the page has no room for the periods of all of them, those of so much fewer customers are read. */
const FEWER = 5;
/** Customers that a line of the log names. */
const NAMED_CUSTOMERS = 3;
/** The end of the range; the last period listed, if more of its customer follow; the cursor of the list of customers. */
const CURSOR = /^(\d{1,16})~(?:([^~]+)~(\d{1,16})~(\d{1,16}))?~(.*)$/;

type PeriodQuery = CheckedRequestOf<'GET /admin/v1/usage/periods'>['query'];
type CustomerPeriod = StoredPeriod & { readonly customer: string };
type PeriodPosition = Pick<CustomerPeriod, 'customer' | 'startMs' | 'endMs'>;

/** Where a page begins. */
interface Start {
  /** Wall time in ms. Periods that end then or later are on no page, though they may be over meanwhile. */
  readonly toMs: number;
  readonly listed?: PeriodPosition | undefined;
  readonly customers?: string | undefined;
}

export function usagePeriodHandlers({ records, periods, logger }: AdminContext) {
  const inTurn = createTurns();
  return {
    async 'GET /admin/v1/usage/periods'({ query }, res) {
      const page = await inTurn(async () => (res.destroyed ? { items: [], next: undefined } : readPage(query)));
      const { format, cursor } = query;
      if (format === undefined) return pageOf(page.items.map(documentOf), page);
      if (page.next !== undefined) res.setHeader('Link', linkToNext(res.req, page.next));
      const { contentType, header = '', line } = PERIOD_ENCODINGS[format];
      const lines = page.items.map((period) => line(period.customer, period));
      return new TextReply(contentType, (cursor === undefined ? header : '') + lines.join(''));
    },
  } satisfies Partial<Handlers>;

  async function readPage({ endedAfter: fromMs = 0, endedBefore, cursor, limit }: PeriodQuery) {
    const closedMs = (await periods.openFromMs()) + 1;
    const start = startFrom(cursor);
    const range = { fromMs, toMs: Math.max(0, Math.min(endedBefore ?? closedMs, closedMs, start.toMs)) };
    return readOn(pagesOf(range))(cursor, limit);
  }

  function pagesOf(range: HistoryRange): ReadPage<CustomerPeriod> {
    return async (cursor, limit) => {
      const { customers, listed } = startFrom(cursor);
      for (let count = Math.min(limit, CUSTOMERS_AT_ONCE); ; count = Math.ceil(count / FEWER)) {
        const page = await records.listCustomers(customers, count);
        const found = await periodsOf(page.items, range, listed);
        if (found.length <= limit) return { items: found, next: page.next && cursorOf(range, undefined, page.next) };
        if (count > 1) continue;
        const items = found.slice(0, limit);
        return { items, next: cursorOf(range, items.at(-1), customers) };
      }
    };
  }

  async function periodsOf(
    customers: readonly CustomerRecord[],
    range: HistoryRange,
    listed: PeriodPosition | undefined,
  ) {
    const read = await periods.periodsOf(customers.map(({ id }) => id));
    const damaged = customers.filter((_, at) => read[at]?.isDamaged).map(({ id }) => id);
    if (damaged.length > 0) {
      const facts = { count: damaged.length, customers: damaged.slice(0, NAMED_CUSTOMERS) };
      logger.warn(facts, 'fields that another program wrote beside the periods of these customers are left out');
    }
    return customers.flatMap(({ id: customer }, at) => {
      const ended = (read[at]?.periods ?? []).filter((period) => isWithin(period.endMs, range));
      const left = listed?.customer === customer ? ended.filter((period) => byEnd(period, listed) > 0) : ended;
      return left.map((period) => ({ customer, ...period }));
    });
  }
}

function documentOf({ customer, startMs, endMs, ...period }: CustomerPeriod) {
  return {
    id: idOf(customer, { startMs }),
    customer,
    ...period,
    startsAt: isoTime(startMs),
    endsAt: isoTime(endMs),
  };
}

function cursorOf({ toMs }: HistoryRange, listed: PeriodPosition | undefined, customers = ''): string {
  const position = listed === undefined ? '' : `${listed.customer}~${listed.endMs}~${listed.startMs}`;
  return `${toMs}~${position}~${customers}`;
}

/** @throws InvalidCursorError */
function startFrom(cursor: string | undefined): Start {
  if (cursor === undefined) return { toMs: Number.POSITIVE_INFINITY };
  const [, toMs, customer, endMs, startMs, customers] = CURSOR.exec(cursor) ?? [];
  if (toMs === undefined) throw new InvalidCursorError();
  const listed = customer === undefined ? undefined : { customer, endMs: Number(endMs), startMs: Number(startMs) };
  return { toMs: Number(toMs), listed, customers: customers || undefined };
}
