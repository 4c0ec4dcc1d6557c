import { text } from 'node:stream/consumers';
import {
  GENERATED_KEY,
  type GeneratedKeyDocument,
  KEY,
  type KeyDocument,
  ROTATED_KEY,
} from '../admin-api/responses.ts';
import { pathOf } from '../admin-client/admin-client.ts';
import { printable } from '../admin-client/printable.ts';
import { isKeyBeginning, isPossibleKey, MAX_KEY_BEGINNING_LENGTH, sha256Hex } from '../keys/api-key.ts';
import { expiryMsOf } from '../keys/key-state.ts';
import {
  type DestructiveOptions,
  type DocumentOptions,
  type JsonOption,
  requireSomeChange,
  type Unsettable,
  unset,
} from './admin-options.ts';
import { confirm, requireTerminalOrYes } from './confirm.ts';
import { connect } from './connect.ts';
import { UsageError } from './exit-status.ts';
import { print, printDocument, printJson, printList, remark } from './output.ts';
import { type Columns, shortTime } from './table.ts';

const KEYS = '/admin/v1/keys';

function keyColumns(nowMs: number): Columns<KeyDocument> {
  return {
    KEY: ({ id }) => id,
    CUSTOMER: ({ customer }) => customer,
    STATE: (key) => keyState(key, nowMs),
    PREFIX: ({ prefix }) => prefix,
    CREATED: ({ created_at }) => shortTime(created_at),
    EXPIRES: ({ expires_at }) => shortTime(expires_at),
    'LAST USED': ({ last_used_at }) => shortTime(last_used_at),
    NAME: ({ name }) => name,
  };
}

/** Returns the state of the record; its customer may also be suspended. A key in its grace period is `rotated`. */
export function keyState(key: KeyDocument, nowMs: number): 'live' | 'rotated' | 'expired' | 'revoked' {
  if (key.revoked_at !== null) return 'revoked';
  const expiresAtMs = key.expires_at === null ? undefined : expiryMsOf({ expiresAt: key.expires_at });
  if (expiresAtMs !== undefined && expiresAtMs <= nowMs) return 'expired';
  return key.replaced_by === null ? 'live' : 'rotated';
}

export async function listKeys(customer: string | undefined, options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  const keys =
    customer === undefined
      ? byCustomer(await client.list(KEY, KEYS))
      : await client.list(KEY, pathOf`/admin/v1/customers/${customer}/keys`);
  await printList('keys', keyColumns(Date.now()), keys, options);
}

export interface DaysOptions extends DocumentOptions {
  readonly days: number;
}

export async function listUnusedKeys(options: DaysOptions): Promise<void> {
  const client = await connect(options);
  const keys = await client.list(KEY, KEYS, { query: { unused_days: String(options.days) } });
  await printList('keys that were unused for that long', keyColumns(Date.now()), byCustomer(keys), options);
}

export async function listExpiringKeys(options: DaysOptions): Promise<void> {
  const client = await connect(options);
  const keys = await client.list(KEY, KEYS, { query: { expiring_days: String(options.days) } });
  await printList('keys that expire so soon', keyColumns(Date.now()), byCustomer(keys), options);
}

/** Sorts keys by customer and creation time: the store returns them in no useful order. */
function byCustomer(keys: readonly KeyDocument[]): KeyDocument[] {
  const sortKey = ({ customer, created_at, id }: KeyDocument) => `${customer} ${created_at ?? ''} ${id}`;
  return keys.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

export interface FindOptions extends DocumentOptions {
  readonly prefix?: string;
}

/** Finds keys by prefix or value. Rejects if there is none. Of a value, only the SHA-256 leaves this machine. */
export async function findKeys(options: FindOptions): Promise<void> {
  const { prefix } = options;
  // Not checked by the option's parser, because its message would repeat the text.
  if (prefix !== undefined && !isKeyBeginning(prefix)) {
    throw new UsageError(
      `--prefix takes at most ${MAX_KEY_BEGINNING_LENGTH} characters of a key; pass a whole key on standard input`,
    );
  }
  const query = prefix === undefined ? { sha256: sha256Hex(await readKeyValue()) } : { prefix };
  const client = await connect(options);
  const keys = await client.list(KEY, KEYS, { query });
  if (keys.length > 0 || options.json) await printList('keys', keyColumns(Date.now()), byCustomer(keys), options);
  if (keys.length === 0)
    throw new Error(prefix === undefined ? 'there is no such key' : 'no key starts with these characters');
}

async function readKeyValue(): Promise<string> {
  if (process.stdin.isTTY) remark('Type or paste the key, then Enter and Ctrl-D:');
  const value = (await text(process.stdin)).trim();
  if (isPossibleKey(value)) return value;
  throw new UsageError('standard input must have one API key and nothing else (or use --prefix)');
}

export async function showKey(keyId: string, options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  await printKey(await client.get(KEY, pathOf`/admin/v1/keys/${keyId}`), options);
}

/** Prints a key; for people with its state, which the admin API leaves to the client's clock. */
async function printKey(key: KeyDocument, options: JsonOption): Promise<void> {
  if (options.json) return printJson(key);
  const state = keyState(key, Date.now());
  const until = state === 'rotated' && key.expires_at !== null ? ` until ${shortTime(key.expires_at)}` : '';
  const { id, ...rest } = key;
  await printDocument({ id, state: state + until, ...rest }, options);
}

export interface NewKeyOptions extends DocumentOptions {
  readonly name?: string;
  readonly expiresAt?: string;
}

export async function createKey(customer: string, options: NewKeyOptions): Promise<void> {
  const { name, expiresAt } = options;
  const client = await connect(options);
  const body = { name, expires_at: expiresAt };
  const created = await client.post(GENERATED_KEY, pathOf`/admin/v1/customers/${customer}/keys`, body);
  remark(`Key ${printable(created.id)} of customer ${printable(created.customer)}.`);
  await printNewKey(created, options);
}

export interface RotateOptions extends DocumentOptions {
  /** In seconds. At most one of the two is set. */
  readonly grace?: number;
  readonly graceSeconds?: number;
}

export async function rotateKey(keyId: string, options: RotateOptions): Promise<void> {
  const graceSeconds = options.grace ?? options.graceSeconds;
  const client = await connect(options);
  const body = { grace_seconds: graceSeconds };
  const created = await client.post(ROTATED_KEY, pathOf`/admin/v1/keys/${keyId}/rotate`, body);
  remark(
    `Key ${printable(created.id)} of customer ${printable(created.customer)} replaces ${printable(created.replaces)}.`,
  );
  remark(`For how long the old key stays valid: tollgate keys show ${printable(created.replaces)}`);
  await printNewKey(created, options);
}

/** Prints the remarks before the value: if printing the value fails, they tell which key to revoke. */
async function printNewKey(created: GeneratedKeyDocument, options: JsonOption): Promise<void> {
  remark('Its value is shown only once. Only its hash is stored, so it cannot be shown again:');
  await (options.json ? printJson(created) : print(`${created.key}\n`));
}

export interface UpdateKeyOptions extends DocumentOptions {
  readonly name?: Unsettable<string>;
  readonly expiresAt?: Unsettable<string>;
}

export async function updateKey(keyId: string, options: UpdateKeyOptions): Promise<void> {
  const change = { name: unset(options.name), expires_at: unset(options.expiresAt) };
  requireSomeChange(change);
  const client = await connect(options);
  await printKey(await client.patch(KEY, pathOf`/admin/v1/keys/${keyId}`, change), options);
}

export async function revokeKey(keyId: string, options: DestructiveOptions): Promise<void> {
  requireTerminalOrYes(options);
  const client = await connect(options);
  if (!options.yes) {
    const { customer, name } = await client.get(KEY, pathOf`/admin/v1/keys/${keyId}`);
    const called = name === null ? '' : ` ("${name}")`;
    await confirm(printable(`Revoke key ${keyId}${called} of customer ${customer}?`));
  }
  await client.delete(pathOf`/admin/v1/keys/${keyId}`);
  await print(`Key ${printable(keyId)} is revoked.\n`);
}
