import type { CheckedRequestOf } from '../../api/admin/routes.ts';
import { isUnusedSince, isValidKey, keyState, oldestFirst } from '../../customers/keys/key-state.ts';
import { ceilingOf } from '../../customers/quota/key-ceiling.ts';
import { fragmentsOf } from '../../store/customer-search.ts';
import { type EnforcedKey, expiryMsOf, type KeyChange, type KeyRecord } from '../../store/record-fields.ts';
import type { Page } from '../../store/records.ts';
import { isoTime } from '../frame/document-of.ts';
import { noSuchCustomer, noSuchKey, possibleKeyId, Refusal, requireCustomer, requireKey } from '../frame/refusal.ts';
import { changesNothing } from './audit.ts';
import { importKey, issueKey } from './create-key.ts';
import type { AdminContext, Handlers } from './dependencies.ts';
import { keyMembers, pageOf, usedOfKeys, withCustomerNames } from './documents.ts';
import { pageOfOne, type ReadPage, readOn } from './filtered-pages.ts';

const DAY_MS = 24 * 3600 * 1000;

type Filter = Omit<CheckedRequestOf<'GET /admin/v1/keys'>['query'], 'cursor' | 'limit'>;

interface UsedKey {
  readonly record: KeyRecord;
  /** Wall time in ms. */
  readonly lastUsedMs: number | undefined;
}

/**
 * Lists, creates, imports, reads, changes and revokes keys. `checkChange` returns the refusal of a change of the current
 * record.
 */
export function keyHandlers(
  context: AdminContext,
  checkChange: (current: EnforcedKey, change: KeyChange) => Refusal | undefined = () => undefined,
) {
  const { records, keyUses, usages, clock, recordChange } = context;

  return {
    async 'GET /admin/v1/customers/:id/keys'({ id, query: { cursor, limit } }) {
      const customer = await requireCustomer(records, id);
      const page = await records.listCustomerKeys(customer.id, cursor, limit);
      const keys = oldestFirst(page.items);
      const { name: customerName } = customer;
      return pageOf(
        (await describeAll(keys)).map((key) => ({ ...key, customerName })),
        page,
      );
    },
    async 'POST /admin/v1/customers/:id/keys'({ id, body: { value, sha256, ...details } }, res) {
      const { id: customer } = await requireCustomer(records, id);
      const facts = { customer, ...details };
      const isImport = value !== undefined || sha256 !== undefined;
      const { record, ...generated } =
        (isImport ? await importKey(context, { value, sha256 }, facts) : await issueKey(context, facts)) ??
        noSuchCustomer();
      const action = isImport ? 'key.import' : 'key.create';
      await recordChange(res, { action, customer, keyId: record.id, details });
      res.location(`/admin/v1/keys/${record.id}`);
      return { ...generated, ...record };
    },
    async 'GET /admin/v1/keys'({ query: { cursor, limit, ...filter } }) {
      const page = await filteredBy(filter)(cursor, limit);
      const keys = page.items.map(({ record }) => record);
      const items = await describeAll(keys, async () => page.items.map(({ lastUsedMs }) => lastUsedMs));
      return pageOf(await withCustomerNames(records, items), page);
    },
    async 'GET /admin/v1/keys/:keyId'({ keyId }) {
      return describe(await requireKey(records, keyId));
    },
    async 'PATCH /admin/v1/keys/:keyId'({ keyId, body: change }, res) {
      const key = await requireKey(records, keyId);
      if (changesNothing(key, change)) return describe(key);

      const check = (current: EnforcedKey) =>
        expiryProblem(current, change.expiresAt) ?? rootProblem(current, change) ?? checkChange(current, change);
      const result = (await records.updateKey(key.id, change, check)) ?? noSuchKey();
      const recorded = { customer: result.customer, keyId: key.id, details: change, before: { ...key } };
      await recordChange(res, { action: 'key.update', ...recorded });
      return describe(result);
    },
    async 'DELETE /admin/v1/keys/:keyId'({ keyId }, res) {
      const revokedAt = isoTime(clock.nowMs());
      const key = (await records.revokeKey(possibleKeyId(keyId), revokedAt)) ?? noSuchKey();
      // A different time means that the key was already revoked, and nothing changed.
      if (key.revokedAt === revokedAt) {
        await recordChange(res, { action: 'key.revoke', customer: key.customer, keyId });
      }
    },
  } satisfies Partial<Handlers>;

  function filteredBy(filter: Filter): ReadPage<UsedKey> {
    const { search, prefix, sha256, id, unusedDays, expiringDays } = filter;
    const fragments = search === undefined ? undefined : fragmentsOf(search);
    const nowMs = clock.nowMs();
    const expiresByMs = expiringDays && nowMs + expiringDays * DAY_MS;
    const unused = unusedDays && { nowMs, sinceMs: nowMs - unusedDays * DAY_MS };
    const isUnused = ({ record, lastUsedMs }: UsedKey) => !unused || isUnusedSince(record, lastUsedMs, unused);
    const isExpiring = (key: KeyRecord) =>
      !expiresByMs || (isValidKey(key, nowMs) && (expiryMsOf(key) ?? Number.POSITIVE_INFINITY) <= expiresByMs);
    const list: ReadPage<KeyRecord> = (cursor, limit) => {
      if (id !== undefined) return records.findKeyById(id).then(pageOfOne);
      return sha256 === undefined ? records.listKeys(cursor, limit) : pageWith(sha256);
    };
    const read: ReadPage<UsedKey> = async (cursor, limit) => {
      const { items, next } = await list(cursor, limit);
      const allowed = items.filter((key) => mayBeginWith(key, prefix) && isExpiring(key));
      const wanted = fragments === undefined ? allowed : await withFragments(allowed, fragments);
      const lastUses = await keyUses.lastUses(wanted.map(({ id }) => id));
      const keys = wanted.map((record, index) => ({ record, lastUsedMs: lastUses[index] }));
      return { items: keys.filter(isUnused), next };
    };
    const isFiltered = [search, prefix, unusedDays, expiringDays].some((value) => value !== undefined);
    return isFiltered ? readOn(inLargeSteps(read)) : read;
  }

  async function withFragments(keys: readonly KeyRecord[], fragments: readonly string[]) {
    const ownTexts = new Map(keys.map((key) => [key.id, ownText(key)]));
    const candidates = keys.filter(({ id }) => fragments.some((fragment) => ownTexts.get(id)?.includes(fragment)));
    const named = await withCustomerNames(records, candidates);
    return named.filter(({ id, customer, customerName = '' }) => {
      const text = `${ownTexts.get(id)}\n${customer}\n${customerName}`.toLowerCase();
      return fragments.every((fragment) => text.includes(fragment));
    });
  }

  /** Returns a page with the key that has this digest, if there is one. */
  async function pageWith(sha256: string): Promise<Page<KeyRecord>> {
    const enforced = await records.findKey(sha256);
    if (enforced === undefined) return pageOfOne<KeyRecord>(undefined);
    // A key written by another program may be missing from the index by id, or share another key's id.
    const record = await records.findKeyById(enforced.id);
    return pageOfOne(record?.customer === enforced.customer ? record : enforced);
  }

  async function describe(key: KeyRecord) {
    const [described] = await withCustomerNames(records, await describeAll([key]));
    return described ?? noSuchKey();
  }

  /** Resolves to the members of these keys' documents, in their order. */
  async function describeAll(
    keys: readonly KeyRecord[],
    readLastUses = (): Promise<readonly (number | undefined)[]> => keyUses.lastUses(keys.map(({ id }) => id)),
  ) {
    const [lastUses, used] = await Promise.all([readLastUses(), usedOfKeys(usages, keys)]);
    return keys.map((key, at) => keyMembers(key, { lastUsedMs: lastUses[at], used: used[at] }, clock.nowMs()));
  }

  /** Refuses to revive an expired key, and to remove the expiry of a key that was replaced. */
  function expiryProblem(key: EnforcedKey, expiresAt: string | null | undefined): Refusal | undefined {
    if (expiresAt === undefined) return undefined;
    if (keyState(key, clock.nowMs()) === 'expired')
      return new Refusal('conflict', 'The key has expired. Create a new one.');
    if (expiresAt !== null || key.replacedBy === undefined) return undefined;
    return new Refusal('conflict', `The key is replaced by ${key.replacedBy} and must expire. Set another expires_at.`);
  }
}

/** Refuses a limit if the key would be refused with it: another program wrote its root. */
function rootProblem(key: EnforcedKey, { requestsPerHour }: KeyChange): Refusal | undefined {
  if (typeof requestsPerHour !== 'number' || ceilingOf({ ...key, requestsPerHour }) !== 'unreadable') return undefined;
  return new Refusal(
    'conflict',
    'The root in the record of the key is invalid: delete it there, and set the limit then.',
  );
}

const ownText = ({ id, name = '', prefix = '' }: KeyRecord) => `${id}\n${name}\n${prefix}`.toLowerCase();

/** Keys that are read at once to find few among them. */
const STEP_KEYS = 1000;

/** Reads more than a page has room for, because few match; as many as there is room for if too many do. */
function inLargeSteps(read: ReadPage<UsedKey>): ReadPage<UsedKey> {
  return async (cursor, limit) => {
    const page = await read(cursor, Math.max(STEP_KEYS, limit));
    return page.items.length <= limit ? page : read(cursor, limit);
  };
}

/** Compares in both directions: the number of characters kept of a key varies (see keyPrefix). */
function mayBeginWith({ prefix }: KeyRecord, beginning = ''): boolean {
  if (prefix === undefined) return beginning === '';
  return prefix.startsWith(beginning) || beginning.startsWith(prefix);
}
