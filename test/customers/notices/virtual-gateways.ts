/** Gateways with notices and the receiver of these, in virtual time: a day takes a second or two. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Deliver, DeliveryOutcome, WebhookEndpoint } from '../../../src/customers/notices/delivery.ts';
import { LevelObserver } from '../../../src/customers/notices/level-observer.ts';
import type { NoticeContent } from '../../../src/customers/notices/notice.ts';
import { type DeliveryResult, NoticeSender } from '../../../src/customers/notices/notice-sender.ts';
import { embeddedNotices } from '../../../src/store/embedded/notices.ts';
import type { NoticeStore } from '../../../src/store/notices.ts';
import { unharmed } from '../../../tools/simulator/simulated-store.ts';
import { VirtualWorld } from '../../../tools/simulator/virtual-world.ts';
import { openEmbeddedContext } from '../../support/embedded-context.ts';

export const MINUTE_MS = 60_000;
export const ENDPOINT: WebhookEndpoint = { url: 'https://ops.example/hook', secrets: [], allowPrivate: false };

export interface Delivered {
  readonly id: string;
  readonly endpoint: string;
  readonly body: Pick<NoticeContent, 'type' | 'timestamp' | 'data'>;
  /** Of the world, in ms since it began. */
  readonly atMs: number;
}

export interface VirtualGateways {
  readonly world: VirtualWorld;
  readonly notices: NoticeStore;
  /** What the receivers took, in order. */
  readonly delivered: readonly Delivered[];
  /** The result of each attempt, with the time of the world. */
  readonly attempts: readonly { readonly atMs: number; readonly result: DeliveryResult }[];
  readonly audited: readonly object[];
  /** What receivers respond: a function of the endpoint and the time of the world. */
  respond: (endpoint: string, atMs: number, id: string) => DeliveryOutcome | 'taker dies';
  /** Sends requests, one by one through random gateways, while usage is below this number of units. */
  climbTo(used: number, requestsPerMinute: number, minutes: number): Promise<void>;
  /** Sends so many requests at an even rate, through random gateways. Resolves to the highest usage by the store. */
  send(requests: number, perSecond: number): Promise<number>;
  run(minutes: number): Promise<void>;
}

export interface VirtualGatewaysOptions {
  readonly seed: number;
  readonly limit: number;
  readonly endpoints?: readonly WebhookEndpoint[];
  /** Of the customer's own endpoint. */
  readonly notifyUrl?: string;
}

/** Three gateways, of which the clocks differ by a day. */
export function openGateways(options: VirtualGatewaysOptions): VirtualGateways {
  const { seed, limit, endpoints = [ENDPOINT] } = options;
  let { notifyUrl } = options;
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-notices-'));
  const context = openEmbeddedContext(join(folder, 'notices.db'), () => world.store.nowMs());
  onTestFinished(() => {
    context.database.close();
    rmSync(folder, { recursive: true });
  });
  const notices = embeddedNotices(context);
  const world: VirtualWorld = new VirtualWorld({
    seed,
    gateways: 3,
    limit,
    onError: 'local',
    timeoutMs: 100,
    clocks: 'random',
    fate: (dice) => unharmed(dice.between(0, 3), dice.between(0, 3)),
    dispatch: () => ({ kind: 'begins', afterMs: 0 }),
    levels: (machine) => {
      const settledOf = async (customer: string) => world.store.settled(customer);
      const usages = { settledOf, usedOf: async () => [] };
      const periods = { periodsOf: async () => [] };
      const common = { notices, usages, periods, clock: machine, scheduler: machine };
      return new LevelObserver({ ...common, created: () => {}, customers: 100 }, [80, 95]);
    },
  });
  const delivered: Delivered[] = [];
  const attempts: { atMs: number; result: DeliveryResult }[] = [];
  const audited: object[] = [];
  const gateways: VirtualGateways = {
    world,
    notices,
    delivered,
    attempts,
    audited,
    respond: () => ({ kind: 'delivered' }),
    async climbTo(used, requestsPerMinute, minutes) {
      for (let sent = 0; sent < requestsPerMinute * minutes; sent++) {
        if (world.store.used('acme') < used) world.gateway(Math.floor(world.dice.between(0, 3))).request();
        await world.time.run(MINUTE_MS / requestsPerMinute);
      }
    },
    async send(requests, perSecond) {
      let highest = 0;
      for (let sent = 0; sent < requests; sent++) {
        world.gateway(Math.floor(world.dice.between(0, 3))).request();
        await world.time.run(1000 / perSecond);
        highest = Math.max(highest, world.store.used('acme'));
      }
      return highest;
    },
    run: (minutes) => world.time.run(minutes * MINUTE_MS),
  };
  const deliver: Deliver = async ({ url }, { id, body }) => {
    const atMs = world.time.nowMs;
    const outcome = gateways.respond(url, atMs, id);
    if (outcome === 'taker dies') return new Promise(() => {});
    if (outcome.kind === 'delivered') delivered.push({ id, endpoint: url, body: JSON.parse(body), atMs });
    // Long enough for other gateways to look for due notices meanwhile.
    return new Promise((resolve) => world.time.in(world.dice.between(10, 4000), () => resolve(outcome)));
  };
  for (const { machine } of world.gateways) {
    const sender = new NoticeSender({
      notices,
      records: { findCustomerRecord: async (id) => ({ id, plan: 'starter', suspended: false }) },
      storeIsUp: () => true,
      endpoints: () => endpoints,
      customerEndpoint: async () => (notifyUrl === undefined ? undefined : { ...ENDPOINT, url: notifyUrl }),
      planOf: ({ plan }) => plan,
      deliver,
      unsetCustomerEndpoint: async () => {
        notifyUrl = undefined;
      },
      audit: async (entry) => void audited.push(entry),
      observer: {
        attempted: (_notice, result) => attempts.push({ atMs: world.time.nowMs, result }),
        dropped: (_notice, error) => {
          throw error;
        },
        counted: () => {},
        failed: (error) => {
          throw error;
        },
      },
      clock: machine,
      scheduler: machine,
      random: () => world.dice.between(0, 1),
    });
    sender.start();
  }
  return gateways;
}
