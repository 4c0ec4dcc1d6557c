import { z } from 'zod';
import { KEY_SHA256, keyChange, keyCreation } from '../admin-api/requests.ts';
import { isKeyBeginning, MAX_KEY_BEGINNING_LENGTH } from '../keys/api-key.ts';
import { isUnusedSince, isValidKey, keyState } from '../keys/key-state.ts';
import { expiresWithin } from '../store/key-expiry.ts';
import type { EnforcedKey, KeyChange, KeyRecord } from '../store/record-fields.ts';
import type { Page } from '../store/store.ts';
import { changesNothing } from './audit.ts';
import { importKey, issueKey } from './create-key.ts';
import type { AdminContext } from './dependencies.ts';
import { definedMembers, keyDocument, newKeyDocument, pageDocument } from './documents.ts';
import { type ReadPage, readOn } from './filtered-pages.ts';
import { PAGE_PARAMETERS, PAGE_QUERY, parseBody, parseQuery } from './parse-request.ts';
import { noSuchCustomer, noSuchKey, possibleKeyId, Refusal, requireCustomer, requireKey } from './refusal.ts';
import type { Routes } from './routes.ts';

const DAY_MS = 24 * 3600 * 1000;

const DAYS = z
  .string()
  .regex(/^[1-9]\d{0,4}$/, 'must be an integer from 1 to 99999')
  .transform(Number)
  .optional();

const KEYS_QUERY = z.strictObject({
  ...PAGE_PARAMETERS,
  unused_days: DAYS,
  expiring_days: DAYS,
  prefix: z
    .string()
    .refine(
      isKeyBeginning,
      `must be the first 1 to ${MAX_KEY_BEGINNING_LENGTH} characters of a key; never send more of one`,
    )
    .optional(),
  sha256: KEY_SHA256.optional(),
});

interface UsedKey {
  readonly record: KeyRecord;
  /** Wall time in ms. */
  readonly lastUsedMs: number | undefined;
}

/** Routes that list, create, import, read, change and revoke keys. */
export function keyRoutes(context: AdminContext): Routes {
  const { records, keyUses, clock, recordChange } = context;
  const creationSchema = keyCreation(() => clock.nowMs());
  const changeSchema = keyChange(() => clock.nowMs());

  return {
    '/admin/v1/customers/:id/keys': {
      async get(req, res) {
        const { cursor, limit } = parseQuery(PAGE_QUERY, req);
        const customer = await requireCustomer(records, req.params.id);
        const page = await records.listCustomerKeys(customer.id, cursor, limit);
        const lastUses = await keyUses.lastUses(page.items.map(({ id }) => id));
        const items = page.items.map((key, index) => keyDocument(key, lastUses[index], clock.nowMs()));
        res.json(pageDocument(items, page));
      },
      async post(req, res) {
        const { value, sha256, ...details } = parseBody(creationSchema, req.body);
        const { id: customer } = await requireCustomer(records, req.params.id);
        const facts = { customer, name: details.name, expiresAt: details.expires_at };
        const isImport = value !== undefined || sha256 !== undefined;
        const { record, ...generated } =
          (isImport ? await importKey(context, { value, sha256 }, facts) : await issueKey(context, facts)) ??
          noSuchCustomer();
        const action = isImport ? 'key.import' : 'key.create';
        await recordChange(res, { action, customer, keyId: record.id, details });
        res
          .status(201)
          .location(`/admin/v1/keys/${record.id}`)
          .json({ ...generated, ...newKeyDocument(record) });
      },
    },
    '/admin/v1/keys': {
      async get(req, res) {
        const { cursor, limit, ...filter } = parseQuery(KEYS_QUERY, req);
        const page = await filteredBy(filter)(cursor, limit);
        const items = page.items.map(({ record, lastUsedMs }) => keyDocument(record, lastUsedMs, clock.nowMs()));
        res.json(pageDocument(items, page));
      },
    },
    '/admin/v1/keys/:keyId': {
      async get(req, res) {
        res.json(await describe(await requireKey(records, req.params.keyId)));
      },
      async patch(req, res) {
        const details = parseBody(changeSchema, req.body);
        const { name, expires_at: expiresAt } = details;
        const change: KeyChange = definedMembers({ name, expiresAt });
        const key = await requireKey(records, req.params.keyId);
        if (changesNothing(key, change)) return void res.json(await describe(key));

        const check = (current: EnforcedKey) => expiryProblem(current, expiresAt);
        const result = (await records.updateKey(key.id, change, check)) ?? noSuchKey();
        await recordChange(res, { action: 'key.update', customer: result.customer, keyId: key.id, details });
        res.json(await describe(result));
      },
      async delete(req, res) {
        const id = possibleKeyId(req.params.keyId);
        const revokedAt = new Date(clock.nowMs()).toISOString();
        const key = (await records.revokeKey(id, revokedAt)) ?? noSuchKey();
        // A different time means that the key was already revoked, and nothing changed.
        if (key.revokedAt === revokedAt) {
          await recordChange(res, { action: 'key.revoke', customer: key.customer, keyId: id });
        }
        res.status(204).end();
      },
    },
  };

  function filteredBy(filter: Omit<z.output<typeof KEYS_QUERY>, 'limit'>): ReadPage<UsedKey> {
    const { prefix, sha256, unused_days: unusedDays, expiring_days: expiringDays } = filter;
    const nowMs = clock.nowMs();
    const expiring = expiringDays && { fromMs: nowMs, toMs: nowMs + expiringDays * DAY_MS };
    const hasBegun = prefix === undefined ? () => true : mayBeginWith(prefix);
    const isUnused = unusedDays === undefined ? () => true : unusedFor(unusedDays);
    const isExpiring = (key: KeyRecord) => !expiring || (isValidKey(key, nowMs) && expiresWithin(key, expiring));
    const list: ReadPage<KeyRecord> = (cursor, limit) => {
      return sha256 === undefined ? records.listKeys(cursor, limit) : pageOf(sha256);
    };
    const read: ReadPage<UsedKey> = async (cursor, limit) => {
      const { items, next } = await list(cursor, limit);
      const wanted = items.filter((key) => hasBegun(key) && isExpiring(key));
      const lastUses = await keyUses.lastUses(wanted.map(({ id }) => id));
      const keys = wanted.map((record, index) => ({ record, lastUsedMs: lastUses[index] }));
      return { items: keys.filter(isUnused), next };
    };
    const isFiltered = [prefix, unusedDays, expiringDays].some((value) => value !== undefined);
    return isFiltered ? readOn(read) : read;
  }

  /** Returns a page with the key that has this digest, if there is one. */
  async function pageOf(sha256: string): Promise<Page<KeyRecord>> {
    const enforced = await records.findKey(sha256);
    if (enforced === undefined) return { items: [], next: undefined };
    // A key written by another program may be missing from the index by id, or share another key's id.
    const record = await records.findKeyById(enforced.id);
    return { items: [record?.customer === enforced.customer ? record : enforced], next: undefined };
  }

  function unusedFor(days: number) {
    const nowMs = clock.nowMs();
    const times = { nowMs, sinceMs: nowMs - days * DAY_MS };
    return ({ record, lastUsedMs }: UsedKey) => isUnusedSince(record, lastUsedMs, times);
  }

  async function describe(key: KeyRecord) {
    const [lastUsedMs] = await keyUses.lastUses([key.id]);
    return keyDocument(key, lastUsedMs, clock.nowMs());
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

/** Compares in both directions: the number of characters kept of a key varies (see keyPrefix). */
function mayBeginWith(beginning: string) {
  return ({ prefix }: KeyRecord) =>
    prefix !== undefined && (prefix.startsWith(beginning) || beginning.startsWith(prefix));
}
