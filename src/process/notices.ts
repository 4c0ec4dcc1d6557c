/** The sending of notices, and the search for keys that expire, composed for the control plane. */
import { systemScheduler } from '../base/clock.ts';
import { Throttle } from '../base/throttle.ts';
import type { Config } from '../config/config.ts';
import { createDeliver } from '../customers/notices/delivery.ts';
import { customerEndpoint, operatorEndpoint, type TestedEndpoint } from '../customers/notices/endpoints.ts';
import { ExpiringKeys } from '../customers/notices/expiring-keys.ts';
import { CUSTOMER_ENDPOINT, testNotice } from '../customers/notices/notice.ts';
import { type NoticeObserver, NoticeSender } from '../customers/notices/notice-sender.ts';
import { planNameOf } from '../customers/quota/effective-limit.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { AuditEntry } from '../store/audit.ts';
import { StoreUnavailableError } from '../store/errors.ts';
import type { NoticeState } from '../store/notices.ts';
import type { CustomerRecord } from '../store/record-fields.ts';
import type { Store } from '../store/store.ts';
import type { ProcessParts } from './observed-store.ts';

/** Minimum interval between log lines about failures that are no failed deliveries. */
const FAILURE_INTERVAL_MS = 60_000;

interface NoticeParts extends Pick<ProcessParts, 'log' | 'clock'> {
  readonly store: Store;
  readonly metrics: Pick<Metrics, 'noticeAttempt' | 'noticeCreated' | 'noticesCounted'>;
}

/** Opens the sending of notices, which starts when a configuration with notices is applied. */
export function openNotices(config: Config, parts: NoticeParts, opened: AsyncDisposableStack) {
  const { store, metrics, log, clock } = parts;
  const { logger } = log;
  let current = config;
  let endpoints = config.notices?.endpoints.map(operatorEndpoint);
  let counts: Readonly<Record<NoticeState, number>> | undefined;
  const setCounts = (counted: typeof counts) => {
    counts = counted;
    metrics.noticesCounted(counted);
  };
  const closing = new AbortController();

  const audit = async (change: Pick<AuditEntry, 'action' | 'customer' | 'details'>) => {
    const entry = { at: new Date(clock.nowMs()).toISOString(), actor: 'gateway', from: '-', ...change };
    await store.audit.append(entry).catch((error) => {
      logger.error({ err: error, audit_entry: entry }, 'a change was made but cannot be written to the audit');
    });
  };
  // A count may be under way when a reload removes the notices.
  const observer = observeNotices(parts, (counted) => setCounts(endpoints && counted));
  const deliver = createDeliver({ clock, closing: closing.signal });
  const sender = new NoticeSender({
    notices: store.notices,
    records: store.records,
    storeIsUp: () => store.isUp(),
    endpoints: () => endpoints,
    customerEndpoint: (customer) => customerEndpoint(customer, store.notifySecrets),
    planOf: ({ plan }) => planNameOf(plan, current) ?? plan,
    deliver,
    unsetCustomerEndpoint: async (id) => void (await store.records.updateCustomer(id, { notifyUrl: null })),
    audit,
    observer,
    clock,
    scheduler: systemScheduler,
    random: Math.random,
  });
  const expiringKeys = new ExpiringKeys({
    records: store.records,
    notices: store.notices,
    storeIsUp: () => store.isUp(),
    days: () => current.notices?.keyExpiryDays,
    created: () => metrics.noticeCreated('key.expiring'),
    onFailure: observer.failed,
    clock,
    scheduler: systemScheduler,
    random: Math.random,
  });
  opened.defer(async () => {
    const closed = Promise.all([sender.close(), expiringKeys.close()]);
    closing.abort();
    await closed;
  });
  sender.start();
  expiringKeys.start();

  return {
    /** Returns the notices of all gateways that are not delivered; undefined while unknown, or without notices. */
    counts: () => counts,
    /** Sends a test notice once to the operator's endpoints, or to the customer's own. */
    async test(customer: CustomerRecord | undefined): Promise<readonly TestedEndpoint[]> {
      const own = customer && (await customerEndpoint(customer, store.notifySecrets));
      const tested = customer === undefined ? (endpoints ?? []) : own === undefined ? [] : [own];
      const notice = testNotice(clock.nowMs(), customer?.id);
      return Promise.all(
        tested.map(async (endpoint) => {
          const outcome = await deliver(endpoint, notice);
          const reason = outcome.kind === 'failed' ? outcome.reason : null;
          return { endpoint: own ? CUSTOMER_ENDPOINT : endpoint.url, result: outcome.kind, reason };
        }),
      );
    },
    applyConfig(next: Config): void {
      current = next;
      endpoints = next.notices?.endpoints.map(operatorEndpoint);
      if (endpoints === undefined) setCounts(undefined);
      sender.start();
    },
  };
}

/** Counts and logs attempts. Of an endpoint only the host is logged, because the URL may contain a secret. */
function observeNotices(
  { metrics, log: { logger }, clock, store }: NoticeParts,
  counted: NoticeObserver['counted'],
): NoticeObserver {
  const failures = new Throttle(clock, FAILURE_INTERVAL_MS, 1);
  return {
    attempted({ id, type, customer, endpoint }, result, reason) {
      const isCustomers = endpoint === CUSTOMER_ENDPOINT;
      metrics.noticeAttempt(isCustomers ? 'customer' : 'operator', result);
      const facts = {
        notice: id,
        type,
        customer,
        endpoint: isCustomers ? endpoint : URL.parse(endpoint)?.host,
        reason,
      };
      if (result === 'delivered') logger.info(facts, 'a notice was delivered');
      if (result === 'failed') logger.info(facts, 'a notice was not delivered: it is retried');
      if (result === 'dead') {
        logger.error(facts, 'a notice was not delivered, and is not retried: see "tollgate notices list"');
      }
      if (result === 'gone') logger.error(facts, 'an endpoint of notices responded 410: it gets no more notices');
    },
    dropped({ id, customer }, error) {
      const facts = { notice: id, customer, err: error };
      logger.error(facts, 'a notice was deleted, because the record of its customer is damaged');
    },
    counted,
    failed(error) {
      // The store itself logs that it is unreachable.
      if (error instanceof StoreUnavailableError && !store.isUp()) return;
      if (failures.isDue('')) logger.error({ err: error }, 'notices could not be sent: this is tried again');
    },
  };
}
