/** The usage of closed hours in the formats that billing systems read: one line per customer and hour. */
import { createHash } from 'node:crypto';
import { type CustomerHour, HOUR_MS } from '../../store/usage-history.ts';
import { isoTime } from './usage-series.ts';

type ExportFormat = 'csv' | 'jsonl' | 'cloudevents' | 'stripe';

/**
 * An hour is exported from this long after its end. The store changes its requests for half as long: the rest allows for
 * the clocks of several Redis servers. Collected refusals arrive by then.
 */
const EXPORTED_AFTER_MS = 60_000;
const MAX_STRIPE_ID = 100;

interface Encoding {
  readonly contentType: string;
  /** The first line, if the format has one. */
  readonly header?: string;
  line(customer: string, hour: CustomerHour): string;
}

/** Returns the end of the last closed hour, wall time in ms. */
export function lastClosedMs(storeTimeMs: number): number {
  return Math.floor((storeTimeMs - EXPORTED_AFTER_MS) / HOUR_MS) * HOUR_MS;
}

/** Identifies one customer's hour, so that a receiver can ignore what it has already. */
function idOf(customer: string, { startMs }: CustomerHour): string {
  return `${customer}/${isoTime(startMs)}`;
}

/** Stripe accepts at most 100 characters. */
function stripeIdOf(customer: string, hour: CustomerHour): string {
  const id = idOf(customer, hour);
  return id.length <= MAX_STRIPE_ID ? id : idOf(createHash('sha256').update(customer).digest('hex'), hour);
}

function rowOf(customer: string, hour: CustomerHour) {
  const refused = Object.values(hour.refused).reduce((sum, count) => sum + count, 0);
  const { startMs, requests, units } = hour;
  return { id: idOf(customer, hour), customer, start: isoTime(startMs), requests, refused, units };
}

const JSON_LINES = 'application/x-ndjson; charset=utf-8';

export const ENCODINGS: Readonly<Record<ExportFormat, Encoding>> = {
  // No value needs quotes: customer ids and times contain neither commas nor quotation marks.
  csv: {
    contentType: 'text/csv; charset=utf-8; header=present',
    header: 'id,customer,start,requests,refused,units\n',
    line: (customer, hour) => `${Object.values(rowOf(customer, hour)).join(',')}\n`,
  },
  jsonl: {
    contentType: JSON_LINES,
    line: (customer, hour) => jsonLine(rowOf(customer, hour)),
  },
  // CloudEvents 1.0, JSON format, one event per line.
  cloudevents: {
    contentType: JSON_LINES,
    line: (customer, hour) => {
      const { id, start, requests, refused, units } = rowOf(customer, hour);
      return jsonLine({
        specversion: '1.0',
        id,
        source: 'tollgate',
        type: 'tollgate.usage.hour',
        subject: customer,
        time: start,
        datacontenttype: 'application/json',
        data: { requests, refused, units },
      });
    },
  },
  // The parameters of Stripe's "create a meter event". Values are strings there.
  stripe: {
    contentType: JSON_LINES,
    line: (customer, hour) =>
      jsonLine({
        event_name: 'api_requests',
        identifier: stripeIdOf(customer, hour),
        timestamp: hour.startMs / 1000,
        payload: { stripe_customer_id: customer, value: String(hour.units) },
      }),
  },
};

function jsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
