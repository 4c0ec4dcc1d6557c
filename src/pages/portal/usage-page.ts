/** How much is left, until when, and which requests were refused. */
import { html } from 'htm/preact';
import type { PortalSessionDocument } from '../../api/portal/portal-documents.ts';
import { address, type ReplyOf } from '../client/api.ts';
import { badge, facts, loaded, Panel, time, timeAgo, usageBar } from '../client/components.ts';
import { clockTime, count, counted, duration, limitText, refusalOf } from '../client/format.ts';
import { HISTORY_POLL_MS, useResource } from '../client/resources.ts';
import { table } from '../client/table.ts';
import { type RefusalCounts, UsageHistory } from '../client/usage-history.ts';

/** Longer than in the console: there may be many customers with an open page. */
const POLL_MS = 30_000;

export function UsagePage({ session }: { session: PortalSessionDocument }) {
  const usage = useResource(address('GET /portal/v1/usage', {}), POLL_MS);
  const deprecated = useResource(address('GET /portal/v1/routes/deprecated', {}), HISTORY_POLL_MS);
  return html`<div class="grid">
    <${Panel} title="Now" wide>${loaded(usage, (current) => usageNow(current, session.suspended))}<//>
    ${usage.data && html`<${Panel} title="Your plan" wide>${planAndLimits(usage.data)}<//>`}
    ${deprecated.data && deprecated.data.items.length > 0 && html`<${Panel} title="Deprecated paths that you call" wide>${deprecatedCalls(deprecated.data.items)}<//>`}
    <${UsageHistory} limit=${usage.data?.limit} refusals=${refusedRequests} />
  </div>`;
}

type Usage = ReplyOf<'GET /portal/v1/usage'>;

function usageNow(usage: Usage, isSuspended: boolean) {
  const { limit, used, remaining, reset_seconds: seconds, period } = usage;
  // That it is suspended is said above, for every page.
  if (isSuspended) {
    return facts([
      ['Used in the last 60 minutes', `${count(used)} of ${count(limit)}`],
      ...(period ? [[`Used in this ${period.per}`, `${count(period.used)} of ${count(period.limit)}`] as const] : []),
    ]);
  }
  const more = `in ${duration(seconds)}, at ${clockTime(Date.now() + seconds * 1000).slice(0, 5)}`;
  const isUsedUp = remaining === 0 || (period?.remaining === 0 && period.beyond === 'refuse');
  return html`<p class="big">${count(remaining)} <small>of ${counted(limit, 'request')} left in this hour</small></p>
    ${remaining === 0 && html`<p class="verdict bad">The limit is used up: requests are refused with 429. More become available ${more}.</p>`}
    ${usageBar({ used, limit })}
    ${period && periodNow(period)}
    ${facts([
      ...(isUsedUp || used === 0 ? [] : [['More become available', more] as const]),
      ...(period ? [[`The next ${period.per} begins`, time(period.ends_at)] as const] : []),
    ])}
    <p class="quiet">The hour slides: each request counts for 60 minutes, and is then available again.</p>`;
}

function planAndLimits({ plan, limit, limit_until: until, limit_then: then, period }: Usage) {
  const hour = count(limit);
  const beyond = { refuse: 'requests are refused', allow: 'requests are served, and counted as overage' };
  return html`${facts([
    ['Plan', plan],
    ['Requests per hour', until === null ? hour : html`${hour} until ${time(until)}, then ${limitText(then)}`],
    ...(period
      ? [[`Requests per ${period.per}`, count(period.limit)] as const, ['Beyond that', beyond[period.beyond]] as const]
      : []),
  ])}
    <p class="quiet">All your keys share these limits.</p>`;
}

type PeriodUsage = NonNullable<Usage['period']>;

function periodNow(period: PeriodUsage) {
  const { per, limit, remaining, overage, beyond, ends_at: end } = period;
  return html`<p class="big">${count(remaining)} <small>of ${counted(limit, 'request')} left in this ${per}</small></p>
    ${remaining === 0 && beyond === 'refuse' && html`<p class="verdict bad">The limit of this ${per} is used up: requests are refused with 429 until ${time(end)}.</p>`}
    ${overage > 0 && html`<p>${counted(overage, 'request')} beyond the limit of this ${per}: served, and counted as overage.</p>`}
    ${usageBar(period)}`;
}

function deprecatedCalls(rows: ReplyOf<'GET /portal/v1/routes/deprecated'>['items']) {
  return table({
    label: 'Deprecated paths that you call',
    rows,
    keyOf: ({ route }) => route,
    columns: [
      ['Path', ({ route }) => html`<code>${route}</code>`],
      ['Shut down', ({ sunset_at: at }) => (at === null ? 'not planned yet' : time(at))],
      ['Replaced by', ({ successor: url }) => url && html`<a href=${url} rel="noreferrer">${url}</a>`],
      ['Requests in 35 days', (row) => count(row.count), 'number'],
      ['Refused with 410', ({ gone }) => (gone > 0 ? badge('bad', count(gone)) : '0'), 'number'],
      ['Last', ({ last_at: at }) => timeAgo(at)],
    ],
  });
}

function refusedRequests(counts: RefusalCounts, range: string) {
  return html`<h3>Refused in the last ${range}</h3>${table({
    label: `Requests that were refused in the last ${range}`,
    rows: counts,
    columns: [
      [
        'Reason',
        ([code]) => html`<span class="reason">${refusalOf(code).title}<small><code>${code}</code></small></span>`,
      ],
      ['What to do', ([code]) => withCode(refusalOf(code).remedy)],
      ['Times', ([, number]) => count(number), 'number'],
    ],
  })}`;
}

/** The texts of the table mark code by backticks. */
function withCode(text: string) {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}
