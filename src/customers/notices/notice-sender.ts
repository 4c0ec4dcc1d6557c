/**
 * Delivers notices. All control planes share this work through the store: a notice that one of them takes is hidden from
 * the others until its attempts have ended, or until the gateway that took it must have ended.
 */
import type { Clock, Scheduler } from '../../base/clock.ts';
import { Periodic } from '../../base/periodic.ts';
import type { AuditEntry } from '../../store/audit.ts';
import { DamagedRecordError } from '../../store/errors.ts';
import type { NoticeState, NoticeStore, StoredNotice } from '../../store/notices.ts';
import type { CustomerRecord } from '../../store/record-fields.ts';
import type { RecordStore } from '../../store/records.ts';
import { CustomerPlaces } from './customer-places.ts';
import type { Deliver, DeliveryOutcome, WebhookEndpoint } from './delivery.ts';
import {
  bodyOf,
  CUSTOMER_ENDPOINT,
  type Delivery,
  type NoticeContent,
  type NoticeType,
  parseNotice,
} from './notice.ts';

const POLL_MS = 1000;
/** The interval while more notices are due than were taken. */
const BUSY_POLL_MS = 100;
/** Longer than a delivery may take. */
const HIDDEN_MS = 60_000;
/** Bounds the notices in progress. More than customers' endpoints can occupy, see {@link CustomerPlaces}. */
const MAX_NOTICES_IN_FLIGHT = 100;
/** A delivery to a customer that finds no place waits this long, or up to twice as long. */
const NO_PLACE_MS = 5000;
/** Interval between counts of notices. */
const COUNT_MS = 10_000;
/** Deliveries that are due this soon after the first one are attempted with it. */
const TOGETHER_MS = 2000;
/** The wait until a delivery may have been set by another gateway, of which the clock is wrong. */
const MAX_WAIT_MS = 3_600_000;

const DISABLED = 'the endpoint is disabled: it responded with status 410';

export type DeliveryResult = DeliveryOutcome['kind'] | 'dead';

interface NoticeSenderOptions {
  readonly notices: NoticeStore;
  readonly records: Pick<RecordStore, 'findCustomerRecord'>;
  readonly storeIsUp: () => boolean;
  /** Returns the endpoints of the configuration; undefined while notices are not configured, which stops everything. */
  readonly endpoints: () => readonly WebhookEndpoint[] | undefined;
  /** Resolves to the endpoint that the customer chose. */
  readonly customerEndpoint: (customer: CustomerRecord) => Promise<WebhookEndpoint | undefined>;
  /** Returns the current name of the customer's plan. */
  readonly planOf: (customer: CustomerRecord) => string;
  readonly deliver: Deliver;
  /** Unsets the URL to which a customer's notices are sent. */
  readonly unsetCustomerEndpoint: (customer: string) => Promise<void>;
  /** Never rejects. */
  readonly audit: (entry: Pick<AuditEntry, 'action' | 'customer' | 'details'>) => Promise<void>;
  readonly observer: NoticeObserver;
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
  /** From 0 to 1. */
  readonly random: () => number;
}

export interface NoticeObserver {
  /** An attempt ended. `dead`: it was the last one. */
  attempted(notice: AttemptedNotice, result: DeliveryResult, reason: string | undefined): void;
  /** A notice was deleted: its customer's record cannot be read, so nothing is known of its endpoints. */
  dropped(notice: Pick<StoredNotice, 'id' | 'customer'>, error: unknown): void;
  /** Stored notices by state, of all gateways. */
  counted(counts: Readonly<Record<NoticeState, number>>): void;
  /** Something other than an attempt failed. */
  failed(error: unknown): void;
}

interface AttemptedNotice {
  readonly id: string;
  readonly type: NoticeType;
  readonly customer: string;
  readonly endpoint: string;
}

export class NoticeSender {
  readonly #options: NoticeSenderOptions;
  readonly #inFlight = new Set<Promise<void>>();
  readonly #places = new CustomerPlaces();
  readonly #polling: Periodic;
  #countedMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: NoticeSenderOptions) {
    this.#options = options;
    this.#polling = new Periodic(options.scheduler, async () => {
      const isBusy = await this.#work();
      if (options.endpoints() === undefined) return undefined;
      return isBusy ? BUSY_POLL_MS : POLL_MS;
    });
  }

  /** Starts, unless it runs already. Runs only while notices are configured. */
  start(): void {
    if (this.#options.endpoints() !== undefined) this.#polling.start(POLL_MS);
  }

  /** Stops. Resolves when deliveries in flight are settled: abort them first. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#polling.close();
    await Promise.all(this.#inFlight);
  }

  /** Resolves to whether more notices may be due than were taken. Never rejects. */
  async #work(): Promise<boolean> {
    const { notices, storeIsUp, clock, observer } = this.#options;
    if (!storeIsUp()) return false;
    let isBusy = false;
    try {
      const free = MAX_NOTICES_IN_FLIGHT - this.#inFlight.size;
      const due = free > 0 ? await notices.takeDue(free, HIDDEN_MS) : [];
      const gone = due.length > 0 ? await notices.goneEndpoints() : new Set<string>();
      for (const notice of due) this.#start(this.#process(notice, gone));
      isBusy = due.length > 0 && due.length === free;
      if (clock.monotonicMs() - this.#countedMs < COUNT_MS) return isBusy;
      this.#countedMs = clock.monotonicMs();
      observer.counted(await notices.counts());
    } catch (error) {
      observer.failed(error);
    }
    return isBusy;
  }

  #start(work: Promise<void>): void {
    const settled = work.catch((error) => this.#options.observer.failed(error));
    this.#inFlight.add(settled);
    void settled.then(() => this.#inFlight.delete(settled));
  }

  /** Attempts all deliveries of a notice that are due, and settles it. */
  async #process(notice: StoredNotice, gone: ReadonlySet<string>): Promise<void> {
    const { notices, clock } = this.#options;
    const stored = parseNotice(notice.content);
    const record = stored && (await this.#recordOf(notice));
    if (stored === undefined || record === undefined) {
      await notices.replace(notice, undefined);
      return;
    }
    const endpoints = await this.#endpointsOf(record, stored);
    const content = this.#opened(
      stored,
      record,
      [...endpoints.keys()].filter((endpoint) => !gone.has(endpoint)),
    );
    // By the store's clock, the first one is due.
    const dueMs = nextAttempt(content.deliveries) + TOGETHER_MS;
    const attempted = await Promise.all(
      content.deliveries.map((delivery) => {
        if (delivery.state === 'dead' || delivery.nextAttemptMs > dueMs) return delivery;
        if (gone.has(delivery.endpoint)) return { ...delivery, state: 'dead' as const, lastError: DISABLED };
        return this.#attempt(notice, content, delivery, endpoints.get(delivery.endpoint));
      }),
    );
    const deliveries = attempted.filter((delivery) => delivery !== undefined);
    if (deliveries.length === 0) {
      await notices.replace(notice, undefined);
      return;
    }
    const pending = deliveries.filter(({ state }) => state === 'pending');
    const waitMs = Math.min(MAX_WAIT_MS, Math.max(0, Math.ceil(nextAttempt(pending) - clock.nowMs())));
    await notices.replace(notice, {
      content: JSON.stringify({ ...content, deliveries }),
      dueInMs: pending.length > 0 ? waitMs : undefined,
      isDead: pending.length < deliveries.length,
    });
  }

  /** Resolves to the customer's record; undefined if it was deleted, or another program damaged it. */
  async #recordOf(notice: StoredNotice): Promise<CustomerRecord | undefined> {
    try {
      return await this.#options.records.findCustomerRecord(notice.customer);
    } catch (error) {
      if (!(error instanceof DamagedRecordError)) throw error;
      this.#options.observer.dropped(notice, error);
      return undefined;
    }
  }

  async #endpointsOf(record: CustomerRecord, { data }: NoticeContent): Promise<ReadonlyMap<string, WebhookEndpoint>> {
    const { endpoints, customerEndpoint } = this.#options;
    const own = await customerEndpoint(record);
    // The limit of a key concerns its customer alone.
    const ofOperator = data.window === 'key' ? [] : (endpoints() ?? []);
    const all = ofOperator.map((endpoint): [string, WebhookEndpoint] => [endpoint.url, endpoint]);
    return new Map(own === undefined ? all : [...all, [CUSTOMER_ENDPOINT, own]]);
  }

  /** Returns the content with one delivery for each endpoint, and the plan. */
  #opened(content: NoticeContent, record: CustomerRecord, endpoints: readonly string[]) {
    if (content.deliveries !== undefined) return { ...content, deliveries: content.deliveries };
    const nextAttemptMs = this.#options.clock.nowMs();
    const deliveries = endpoints.map((endpoint): Delivery => {
      return { endpoint, state: 'pending', attempts: 0, nextAttemptMs, lastError: null };
    });
    return { ...content, data: { ...content.data, plan: this.#options.planOf(record) }, deliveries };
  }

  /** Resolves to how the delivery stands; undefined when nothing is left to do. Never rejects. */
  async #attempt(
    notice: StoredNotice,
    content: NoticeContent,
    delivery: Delivery,
    endpoint: WebhookEndpoint | undefined,
  ): Promise<Delivery | undefined> {
    const { deliver, clock, random, observer } = this.#options;
    const { id, customer } = notice;
    const isCustomers = delivery.endpoint === CUSTOMER_ENDPOINT;
    // The customer unset its URL.
    if (endpoint === undefined && isCustomers) return undefined;
    const leavePlace = endpoint && isCustomers ? this.#places.take(endpoint.url) : () => {};
    if (leavePlace === undefined) {
      return { ...delivery, nextAttemptMs: clock.nowMs() + NO_PLACE_MS * (1 + random()) };
    }
    const about = { id, type: content.type, customer, endpoint: delivery.endpoint };
    const outcome: DeliveryOutcome =
      endpoint === undefined
        ? { kind: 'failed', reason: 'the endpoint is not configured', retryAfterMs: null }
        : await deliver(endpoint, { id, body: bodyOf(content) }).finally(leavePlace);
    // An aborted attempt does not count. Another gateway goes on at once.
    if (this.#isClosed && outcome.kind === 'failed') return delivery;
    if (outcome.kind === 'delivered') {
      observer.attempted(about, 'delivered', undefined);
      return undefined;
    }
    const attempts = delivery.attempts + 1;
    if (outcome.kind === 'gone') {
      observer.attempted(about, 'gone', undefined);
      return this.#disable(about, { ...delivery, attempts });
    }
    const waitMs = waitBeforeAttempt(attempts, outcome.retryAfterMs, random());
    observer.attempted(about, waitMs === null ? 'dead' : 'failed', outcome.reason);
    const lastError = outcome.reason;
    if (waitMs === null) return { ...delivery, attempts, lastError, state: 'dead' };
    return { ...delivery, attempts, lastError, nextAttemptMs: clock.nowMs() + waitMs };
  }

  /** Disables an endpoint that wants no more notices. The operator can send the notice again, which enables it. */
  async #disable({ customer, endpoint }: AttemptedNotice, delivery: Delivery): Promise<Delivery | undefined> {
    const { notices, unsetCustomerEndpoint, audit, observer, clock } = this.#options;
    const isCustomers = endpoint === CUSTOMER_ENDPOINT;
    try {
      await (isCustomers ? unsetCustomerEndpoint(customer) : notices.setGone(endpoint, true));
    } catch (error) {
      observer.failed(error);
      return { ...delivery, lastError: DISABLED, nextAttemptMs: clock.nowMs() + HIDDEN_MS };
    }
    await audit({ action: 'endpoint.disable', customer, details: { endpoint } });
    return isCustomers ? undefined : { ...delivery, state: 'dead', lastError: DISABLED };
  }
}

/** Returns when the first pending delivery is due. */
function nextAttempt(deliveries: readonly Delivery[]): number {
  return Math.min(...deliveries.flatMap(({ state, nextAttemptMs }) => (state === 'pending' ? [nextAttemptMs] : [])));
}

/** Waits after the first, second, … failed attempt. A receiver that is down for half an hour still gets the notice. */
const WAITS_MS = [5000, 30_000, 120_000, 600_000, 1_800_000] as const;

/** Waits are lengthened by up to this part, so that receivers are not called by all notices at once. */
const JITTER = 0.2;

/** The longest Retry-After that is respected. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * Returns the wait until the next attempt in ms, or null when the notice is dead. `retryAfterMs`: what the receiver
 * asked for. `random`: from 0 to 1.
 */
export function waitBeforeAttempt(failedAttempts: number, retryAfterMs: number | null, random: number): number | null {
  const waitMs = WAITS_MS[failedAttempts - 1];
  if (waitMs === undefined) return null;
  return Math.max(Math.round(waitMs * (1 + JITTER * random)), Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS));
}
