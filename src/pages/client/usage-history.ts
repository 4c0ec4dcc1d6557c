/** The requests of a customer over time, as a chart, with the refusals by their reasons. */
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import type { UsageHistoryDocument } from '../../api/admin/responses.ts';
import { address } from './api.ts';
import { Chart } from './chart.ts';
import { loaded, Panel } from './components.ts';
import { HOUR_MS, tollgate } from './format.ts';
import { HISTORY_POLL_MS, useResource } from './resources.ts';
import { setQuery, usePlace } from './router.ts';

/** Without a number of days, the gateway's default for the step. */
const RANGES = [
  ['24h', '24 hours', 'hour', undefined],
  ['7d', '7 days', 'hour', 7],
  ['35d', '35 days', 'day', undefined],
] as const;

/** Number of refused requests by code, most frequent first. */
export type RefusalCounts = readonly (readonly [code: string, count: number])[];

interface UsageHistoryProps {
  /** In the console. In the portal, it is that of the session. */
  readonly customer?: string;
  /** Requests per hour. */
  readonly limit?: number | undefined;
  /** Shows the refusals in the range, if there are any. */
  readonly refusals: (counts: RefusalCounts, range: string) => ComponentChildren;
}

export function UsageHistory({ customer, limit, refusals }: UsageHistoryProps) {
  const { query } = usePlace();
  const [range, label, step, days] = RANGES.find(([name]) => name === query.range) ?? RANGES[0];
  // Of whole hours, so that the address changes once an hour.
  const from = days && new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS - (days * 24 - 1) * HOUR_MS).toISOString();
  const endpoint = customer ? 'GET /admin/v1/customers/:id/usage/history' : 'GET /portal/v1/usage/history';
  const history = useResource(address(endpoint, { id: customer ?? '', query: { step, from } }), HISTORY_POLL_MS);
  const choices = html`<div class="choices" role="group" aria-label="Time range">
    ${RANGES.map(
      ([name, text]) =>
        html`<button type="button" aria-pressed=${name === range} onClick=${() => setQuery({ range: name })}>${text}</button>`,
    )}
  </div>`;
  const line = customer && tollgate('usage', 'history', customer, { step, from: days && `${days}d` });
  return html`<${Panel} title="History" wide actions=${choices} command=${line}>
    ${loaded(history, ({ points }) => {
      const counts = refusedByCode(points);
      const inUnits = points.some(({ requests, units }) => requests !== units);
      const bars = points.map(({ start, requests, units, refused }) => {
        return { start, admitted: units, refused, requests: inUnits ? requests : undefined };
      });
      return html`<${Chart} label=${`Requests of the last ${label}`} points=${bars} limit=${step === 'hour' ? limit : undefined} />
        ${counts.length > 0 && refusals(counts, label)}`;
    })}
  <//>`;
}

/** Returns the refusals of all gateways. */
function refusedByCode(points: UsageHistoryDocument['points']): RefusalCounts {
  const counts = new Map<string, number>();
  for (const { refused_by_code = {} } of points) {
    for (const [code, number] of Object.entries(refused_by_code)) counts.set(code, (counts.get(code) ?? 0) + number);
  }
  return [...counts].toSorted(([, a], [, b]) => b - a);
}
