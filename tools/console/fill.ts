/** Fills a store as an installation of many customers has it: records, keys, windows, history and audit. */
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { createApiKey, keyPrefix, sha256Hex } from '../../src/formats/api-key.ts';
import type { CustomerRecord, KeyRecord } from '../../src/store/record-fields.ts';
import type { Store } from '../../src/store/store.ts';
import { DAY_MS, HOUR_MS } from '../../src/store/usage-history.ts';
import { hourly } from '../../src/store/windows.ts';

export interface FilledCustomer {
  readonly id: string;
  readonly key: string;
}

const PLANS = [
  { name: 'enterprise', share: 0.01, limit: 50_000 },
  { name: 'business', share: 0.1, limit: 20_000 },
  { name: 'professional', share: 0.3, limit: 5000 },
  { name: 'starter', share: 1, limit: 1000 },
];
const FIRST_WORDS = [
  'Amber',
  'Blue',
  'Coastal',
  'Delta',
  'Evergreen',
  'Falcon',
  'Granite',
  'Harbour',
  'Iron',
  'Juniper',
];
const SECOND_WORDS = ['Analytics', 'Bakery', 'Clinic', 'Dynamics', 'Energy', 'Foods', 'Garden', 'Hotels', 'Insurance'];
const CODES = ['quota_exceeded', 'customer_suspended', 'burst_exceeded'];
/** One customer in so many is suspended, has a key that expires soon, is near its limit, or was refused. */
const RARE = 50;
const AUDIT_ENTRIES = 10_000;
/** Days of history before today, for every customer. */
const HISTORY_DAYS = 3;
const CALLS_AT_ONCE = 200;

/** Resolves to the customers with their keys. The ids are `customer-000001` and so on. */
export async function fillStore(
  store: Store,
  customers: number,
  clock: Clock = systemClock,
): Promise<FilledCustomer[]> {
  const nowMs = clock.nowMs();
  const numbers = Array.from({ length: customers }, (_, index) => index + 1);
  const filled = numbers.map((number) => ({ id: `customer-${String(number).padStart(6, '0')}`, key: createApiKey() }));

  await inTurns(filled, async ({ id, key }, index) => {
    const plan = planOf(index, customers);
    const customer: CustomerRecord = {
      id,
      plan: plan.name,
      name: nameOf(index),
      suspended: index % RARE === 1,
      ...(plan.name === 'enterprise' && { requestsPerHour: plan.limit }),
    };
    await store.records.createCustomer(customer);
    const record: KeyRecord = {
      id: `key_${id}`,
      customer: id,
      prefix: keyPrefix(key) ?? '',
      createdAt: new Date(nowMs - 100 * DAY_MS).toISOString(),
      ...(index % RARE === 2 && { expiresAt: new Date(nowMs + (1 + (index % 60)) * DAY_MS).toISOString() }),
    };
    await store.records.createKey(sha256Hex(key), record);
    const limit = plan.limit;
    const need = index % RARE === 0 ? Math.floor(limit * 0.9) : 1 + (index % 500);
    const request = { customer: id, grant: id, need, ahead: 0, holdMs: 2000, refunds: [] };
    await store.windows.reserve({ ...request, limits: hourly(limit) });
  });

  const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  await inTurns(pieces(filled, 1000), async (piece, at) => {
    const rare = piece.filter((_, index) => (at * 1000 + index) % RARE === 0);
    await store.usageHistory?.add({
      counts: [
        ...Array.from({ length: HISTORY_DAYS }, (_, day) =>
          piece.map(({ id }) => ({
            customer: id,
            hourMs: hourMs - (day + 1) * DAY_MS,
            code: 'quota_exceeded',
            count: 1,
          })),
        ).flat(),
        ...rare.map(({ id }, index) => ({
          customer: id,
          hourMs,
          code: CODES[index % CODES.length] ?? '',
          count: index,
        })),
      ],
      totals: PLANS.map(({ name }) => ({
        plan: name,
        hourMs: hourMs - (at % 24) * HOUR_MS,
        what: 'requests',
        count: 1000,
      })),
      near: rare.map(({ id }) => ({ customer: id, percent: 90 })),
    });
    await store.keyUses.noteUses(
      piece.filter((_, index) => index % 2 === 0).map(({ id }) => ({ keyId: `key_${id}`, usedAtMs: nowMs - HOUR_MS })),
    );
  });
  for (let entry = 0; entry < AUDIT_ENTRIES; entry++) {
    const { id } = filled[entry % filled.length] ?? { id: '' };
    await store.audit.append({
      at: new Date(nowMs).toISOString(),
      actor: 'token',
      from: '127.0.0.1',
      action: 'customer.update',
      customer: id,
      details: { plan: 'business' },
    });
  }
  return filled;
}

function planOf(index: number, customers: number) {
  const position = ((index * 7919) % customers) / customers;
  return PLANS.find(({ share }) => position < share) ?? { name: 'starter', limit: 1000 };
}

function nameOf(index: number): string {
  const first = FIRST_WORDS[index % FIRST_WORDS.length];
  const second = SECOND_WORDS[Math.floor(index / FIRST_WORDS.length) % SECOND_WORDS.length];
  return `${first} ${second} ${index + 1}`;
}

/** Calls `work` for each item, some at once. */
async function inTurns<Item>(
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<void>,
): Promise<void> {
  for (let start = 0; start < items.length; start += CALLS_AT_ONCE) {
    await Promise.all(items.slice(start, start + CALLS_AT_ONCE).map((item, index) => work(item, start + index)));
  }
}

function pieces<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));
}
