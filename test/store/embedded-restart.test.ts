import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/store/embedded/embedded-store.ts';
import { StoreUnavailableError } from '../../src/store/errors.ts';
import { createKeyWithCustomer } from '../support/stored-key.ts';
import { RecordingObserver, refundOf, request } from './contract.ts';
import { everyPage } from './every-page.ts';

const HOUR_MS = 3_600_000;
const SHA256 = 'a'.repeat(64);
/** As the first version of the schema was written, with a customer, a key and a window. */
const FORMER_VERSION = `
  CREATE TABLE customer (id TEXT PRIMARY KEY, plan TEXT NOT NULL, requests_per_hour TEXT, name TEXT, suspended TEXT,
    usage_reset_at TEXT) STRICT, WITHOUT ROWID;
  CREATE TABLE api_key (sha256 TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, customer TEXT NOT NULL, name TEXT,
    prefix TEXT, created_at TEXT, expires_at TEXT, revoked_at TEXT) STRICT, WITHOUT ROWID;
  CREATE TABLE window (customer TEXT PRIMARY KEY, epoch TEXT NOT NULL, used INTEGER NOT NULL, oldest INTEGER NOT NULL,
    newest INTEGER NOT NULL, hold_end_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX window_by_newest ON window (newest);
  CREATE TABLE bucket (customer TEXT NOT NULL, bucket INTEGER NOT NULL, units INTEGER NOT NULL,
    PRIMARY KEY (customer, bucket)) STRICT, WITHOUT ROWID;
  PRAGMA user_version = 1;
  INSERT INTO customer VALUES ('acme', 'starter', NULL, NULL, '1', NULL);
  INSERT INTO api_key VALUES ('${SHA256}', 'k1', 'acme', 'production', NULL, NULL, NULL, NULL);
  INSERT INTO window VALUES ('acme', 'epoch', 7, ${Date.UTC(2026, 0, 1) / 10_000}, ${Date.UTC(2026, 0, 1) / 10_000}, 0);
  INSERT INTO bucket VALUES ('acme', ${Date.UTC(2026, 0, 1) / 10_000}, 7);
`;

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-embedded-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'made', 'on', 'the', 'way', 'store.db');
}

function testClock(startMs: number) {
  const clock = { wallMs: startMs, nowMs: () => clock.wallMs, monotonicMs: () => performance.now() };
  return clock;
}

function open(file: string, clock = testClock(Date.UTC(2026, 0, 1))) {
  return openEmbeddedStore({ file, clock, observer: new RecordingObserver() });
}

test('keys, customers and what is used of a quota survive a restart', async () => {
  const file = newFile();
  const first = await open(file);
  await first.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  await createKeyWithCustomer(first.records, SHA256, { id: 'k1', customer: 'acme' });
  await first.records.revokeKey('k1', '2026-01-01T00:00:00Z');
  const grant = await first.windows.reserve(request({ need: 7 }));
  await first.close();

  const second = await open(file);
  onTestFinished(() => second.close());
  expect(await second.records.findCustomer('acme')).toEqual({ id: 'acme', plan: 'starter', suspended: false });
  expect(await second.records.findKeyById('k1')).toMatchObject({ revokedAt: '2026-01-01T00:00:00Z' });
  expect(await second.windows.reserve(request({ need: 7 }))).toMatchObject({
    granted: 3,
    counts: [{ used: 10, epoch: grant.counts[0].epoch }],
  });
});

test('a unit is free again an hour after the bucket of its hold has ended', async () => {
  const clock = testClock(Date.UTC(2026, 0, 1));
  const store = await open(newFile(), clock);
  onTestFinished(() => store.close());
  const [{ waitMs }] = (await store.windows.reserve(request({ need: 10 }))).counts;
  expect(waitMs).toBeGreaterThan(HOUR_MS);

  clock.wallMs += waitMs - 1;
  expect(await store.windows.reserve(request({ need: 10 }))).toMatchObject({ granted: 0, counts: [{ waitMs: 1 }] });
  clock.wallMs += 1;
  expect(await store.windows.reserve(request({ need: 10 }))).toMatchObject({ granted: 10 });
});

test('a window that nobody used for an hour is removed, and its customer begins a new one', async () => {
  const file = newFile();
  const clock = testClock(Date.UTC(2026, 0, 1));
  const store = await open(file, clock);
  const asked = ['a', 'b', 'c', 'd', 'e'].map((customer) => request({ customer }));
  const old = await Promise.all(asked.map((each) => store.windows.reserve(each)));
  clock.wallMs += 2 * HOUR_MS;
  for (const customer of ['v', 'w', 'x']) await store.windows.reserve(request({ customer }));
  const after = await store.windows.reserve(request({ customer: 'a' }));
  expect(after.counts[0].epoch).not.toBe(old[0]?.counts[0].epoch);
  const refunds = asked.slice(0, 1).map((each) => refundOf(each, 1));
  expect(await store.windows.refund('a', refunds)).toBe(0);
  await store.close();

  const database = new DatabaseSync(file);
  onTestFinished(() => database.close());
  const customersIn = (table: string) => database.prepare(`SELECT customer FROM ${table} ORDER BY customer`).all();
  expect(customersIn('window').map(({ customer }) => customer)).toEqual(['a', 'v', 'w', 'x']);
  expect(customersIn('bucket').map(({ customer }) => customer)).toEqual(['a', 'v', 'w', 'x']);
});

test('a second process on the same file gets an error and changes nothing', async () => {
  const file = newFile();
  const store = await open(file);
  onTestFinished(() => store.close());
  const module = new URL('../../src/store/embedded/database.ts', import.meta.url).href;
  const script = `import { openDatabase } from ${JSON.stringify(module)}; openDatabase(process.argv[1]);`;
  const second = spawnSync(process.execPath, ['--input-type=module', '--eval', script, file], { encoding: 'utf8' });
  expect(second.status).toBe(1);
  expect(second.stderr).toContain(`the store file ${file} is in use by another process`);
  expect(await store.windows.reserve(request({ need: 10 }))).toMatchObject({ granted: 10 });
});

test('a file that is no store is not opened', async () => {
  const file = newFile();
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, 'These are my notes, and they are longer than a header of a hundred bytes would be. '.repeat(20));
  await expect(open(file)).rejects.toThrow(StoreUnavailableError);
  await expect(open(file)).rejects.toThrow(`cannot open the store file ${file}: file is not a database`);
});

test('a file of the version before keeps what it holds, and learns what is new', async () => {
  const file = newFile();
  mkdirSync(dirname(file), { recursive: true });
  const former = new DatabaseSync(file);
  former.exec(FORMER_VERSION);
  former.close();

  for (const opening of ['first', 'again']) {
    const store = await open(file);
    expect(await store.records.findCustomer('acme')).toEqual({ id: 'acme', plan: 'starter', suspended: true });
    expect(await store.windows.reserve(request({ need: 0 }))).toMatchObject({ counts: [{ used: 7 }] });
    if (opening === 'first') {
      expect(await store.records.findKeyById('k1')).toEqual({ id: 'k1', customer: 'acme', name: 'production' });
      await store.records.retireKey('k1', {}, { replacedBy: 'k2', expiresAt: '2027-01-01T00:00:00Z' });
      await store.keyUses.noteUses([{ keyId: 'k1', usedAtMs: 5 }]);
      await store.audit.append({ at: '2026-01-01T00:00:00Z', actor: 'token', from: '::1', action: 'key.rotate' });
    }
    expect(await store.records.findKeyById('k1')).toMatchObject({ replacedBy: 'k2' });
    expect(await store.keyUses.lastUses(['k1'])).toEqual([5]);
    expect((await store.audit.list(undefined, 10)).items).toHaveLength(1);
    await store.close();
  }
});

test('changes, their order and their ids are kept', async () => {
  const file = newFile();
  const entry = { at: '2026-01-01T00:00:00Z', actor: 'token', from: '::1' };
  const first = await open(file);
  for (let i = 0; i < 3; i += 1) await first.audit.append({ ...entry, action: String(i) });
  await first.close();
  const store = await open(file);
  onTestFinished(() => store.close());
  await store.audit.append({ ...entry, action: 'newest' });
  const pages = await everyPage((cursor) => store.audit.list(cursor, 2));
  const actions = pages.flat().map(({ action }) => action);
  expect(actions).toEqual(['newest', '2', '1', '0']);
});

test('a use that is noted after its key was deleted stores nothing', async () => {
  const file = newFile();
  const store = await open(file);
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  await createKeyWithCustomer(store.records, SHA256, { id: 'k1', customer: 'acme' });
  await store.records.deleteCustomer('acme');
  await store.keyUses.noteUses([{ keyId: 'k1', usedAtMs: 5 }]);
  await store.close();
  const database = new DatabaseSync(file);
  onTestFinished(() => database.close());
  expect(database.prepare('SELECT * FROM key_use').all()).toEqual([]);
});

test('a file of a newer version is not touched', async () => {
  const file = newFile();
  await (await open(file)).close();
  const database = new DatabaseSync(file);
  database.exec('PRAGMA user_version = 99');
  database.close();
  await expect(open(file)).rejects.toThrow(/its schema is version 99, this program knows version \d+/);
});

test('calls after closing reject as unavailable', async () => {
  const store = await open(newFile());
  await store.close();
  await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreUnavailableError);
  await expect(store.windows.reserve(request())).rejects.toBeInstanceOf(StoreUnavailableError);
});
