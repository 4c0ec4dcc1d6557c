/** Exact usage in the formats that billing systems read: one line for each customer and closed hour, or closed period. */
import { createHash } from 'node:crypto';
import type { StoredPeriod } from '../../store/period-reader.ts';
import { type CustomerHour, HOUR_MS } from '../../store/usage-history.ts';
import { isoTime } from './usage-series.ts';

type ExportFormat = 'csv' | 'jsonl' | 'cloudevents' | 'stripe';

/**
 * An hour is exported from this long after its end. The store changes its requests for half as long: the rest allows for
 * the clocks of several Redis servers. Collected refusals arrive by then.
 */
const EXPORTED_AFTER_MS = 60_000;
const MAX_STRIPE_ID = 100;

interface Encoding<Item> {
  readonly contentType: string;
  /** The first line, if the format has one. */
  readonly header?: string;
  line(customer: string, item: Item): string;
}

/** Returns the end of the last closed hour, wall time in ms. */
export function lastClosedMs(storeTimeMs: number): number {
  return Math.floor((storeTimeMs - EXPORTED_AFTER_MS) / HOUR_MS) * HOUR_MS;
}

/** What is exported of a customer. */
interface Exported<Item> {
  /** Names of the members of a line, after its id and customer. */
  readonly columns: readonly string[];
  /** The member with the start. */
  readonly start: string;
  /** Returns the values of the columns. */
  valuesOf(item: Item): readonly (string | number)[];
  readonly eventType: string;
  readonly meter: string;
  /** `timeMs`: wall time. */
  meteredOf(item: Item): { readonly value: number; readonly timeMs: number };
}

/** Identifies what one customer used from a time on, so that a receiver can ignore what it has already. */
export function idOf(customer: string, { startMs }: { readonly startMs: number }): string {
  return `${customer}/${isoTime(startMs)}`;
}

/** Stripe accepts at most 100 characters. */
function stripeIdOf(customer: string, item: { readonly startMs: number }): string {
  const id = idOf(customer, item);
  return id.length <= MAX_STRIPE_ID ? id : idOf(createHash('sha256').update(customer).digest('hex'), item);
}

const JSON_LINES = 'application/x-ndjson; charset=utf-8';

function encodingsOf<Item extends { readonly startMs: number }>({
  columns,
  start,
  valuesOf,
  eventType,
  meter,
  meteredOf,
}: Exported<Item>): Readonly<Record<ExportFormat, Encoding<Item>>> {
  const membersOf = (item: Item) => Object.fromEntries(valuesOf(item).map((value, at) => [columns[at] ?? '', value]));
  return {
    // No value needs quotes: ids, names of plans and times contain neither commas nor quotation marks.
    csv: {
      contentType: 'text/csv; charset=utf-8; header=present',
      header: `${['id', 'customer', ...columns].join(',')}\n`,
      line: (customer, item) => `${[idOf(customer, item), customer, ...valuesOf(item)].join(',')}\n`,
    },
    jsonl: {
      contentType: JSON_LINES,
      line: (customer, item) => jsonLine({ id: idOf(customer, item), customer, ...membersOf(item) }),
    },
    // CloudEvents 1.0, JSON format, one event per line.
    cloudevents: {
      contentType: JSON_LINES,
      line: (customer, item) => {
        const { [start]: time, ...data } = membersOf(item);
        return jsonLine({
          specversion: '1.0',
          id: idOf(customer, item),
          source: 'tollgate',
          type: eventType,
          subject: customer,
          time,
          datacontenttype: 'application/json',
          data,
        });
      },
    },
    // The parameters of Stripe's "create a meter event". Values are strings there.
    stripe: {
      contentType: JSON_LINES,
      line: (customer, item) => {
        const { value, timeMs } = meteredOf(item);
        return jsonLine({
          event_name: meter,
          identifier: stripeIdOf(customer, item),
          timestamp: timeMs / 1000,
          payload: { stripe_customer_id: customer, value: String(value) },
        });
      },
    },
  };
}

export const HOUR_ENCODINGS = encodingsOf<CustomerHour>({
  columns: ['start', 'requests', 'refused', 'units'],
  start: 'start',
  valuesOf: ({ startMs, requests, refused, units }) => {
    return [isoTime(startMs), requests, Object.values(refused).reduce((sum, count) => sum + count, 0), units];
  },
  eventType: 'tollgate.usage.hour',
  meter: 'api_requests',
  meteredOf: ({ startMs, units }) => ({ value: units, timeMs: startMs }),
});

export const PERIOD_ENCODINGS = encodingsOf<StoredPeriod>({
  columns: ['plan', 'starts_at', 'ends_at', 'included', 'used', 'overage'],
  start: 'starts_at',
  valuesOf: ({ plan, startMs, endMs, included, used, overage }) => {
    return [plan, isoTime(startMs), isoTime(endMs), included, used, overage];
  },
  eventType: 'tollgate.usage.period',
  meter: 'api_overage',
  // Its last second: Stripe accepts events of the last 35 days, and adds them to the invoice of their time.
  meteredOf: ({ endMs, overage }) => ({ value: overage, timeMs: endMs - 1000 }),
});

function jsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
