import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/store/embedded/embedded-store.ts';
import { StoreUnavailableError } from '../../src/store/store.ts';
import { giveBack, RecordingObserver, request } from './contract.ts';

const HOUR_MS = 3_600_000;
const SHA256 = 'a'.repeat(64);

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
  await first.records.createKey(SHA256, { id: 'k1', customer: 'acme' });
  await first.records.revokeKey('k1', '2026-01-01T00:00:00Z');
  const grant = await first.windows.reserve(request({ need: 7 }));
  await first.close();

  const second = await open(file);
  onTestFinished(() => second.close());
  expect(await second.records.findCustomer('acme')).toEqual({ id: 'acme', plan: 'starter', suspended: false });
  expect(await second.records.findKeyById('k1')).toMatchObject({ revokedAt: '2026-01-01T00:00:00Z' });
  expect(await second.windows.reserve(request({ need: 7 }))).toMatchObject({
    granted: 3,
    used: 10,
    epoch: grant.epoch,
  });
});

test('a unit is free again an hour after the bucket of its hold has ended', async () => {
  const clock = testClock(Date.UTC(2026, 0, 1));
  const store = await open(newFile(), clock);
  onTestFinished(() => store.close());
  const { waitMs } = await store.windows.reserve(request({ need: 10 }));
  expect(waitMs).toBeGreaterThan(HOUR_MS);

  clock.wallMs += waitMs - 1;
  expect(await store.windows.reserve(request({ need: 10 }))).toMatchObject({ granted: 0, waitMs: 1 });
  clock.wallMs += 1;
  expect(await store.windows.reserve(request({ need: 10 }))).toMatchObject({ granted: 10 });
});

test('a window that nobody used for an hour is removed, and its customer begins a new one', async () => {
  const file = newFile();
  const clock = testClock(Date.UTC(2026, 0, 1));
  const store = await open(file, clock);
  const old = await Promise.all(
    ['a', 'b', 'c', 'd', 'e'].map((customer) => store.windows.reserve(request({ customer }))),
  );
  clock.wallMs += 2 * HOUR_MS;
  for (const customer of ['v', 'w', 'x']) await store.windows.reserve(request({ customer }));
  const after = await store.windows.reserve(request({ customer: 'a' }));
  expect(after.epoch).not.toBe(old[0]?.epoch);
  expect(
    await store.windows.refund(
      'a',
      old.slice(0, 1).map((grant) => giveBack(grant, 1)),
    ),
  ).toBe(0);
  await store.close();

  const database = new DatabaseSync(file);
  onTestFinished(() => database.close());
  const customersIn = (table: string) => database.prepare(`SELECT customer FROM ${table} ORDER BY customer`).all();
  expect(customersIn('window').map(({ customer }) => customer)).toEqual(['a', 'v', 'w', 'x']);
  expect(customersIn('bucket').map(({ customer }) => customer)).toEqual(['a', 'v', 'w', 'x']);
});

test('a second process on the same file is told so and changes nothing', async () => {
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

test('a file of a newer version is not touched', async () => {
  const file = newFile();
  await (await open(file)).close();
  const database = new DatabaseSync(file);
  database.exec('PRAGMA user_version = 99');
  database.close();
  await expect(open(file)).rejects.toThrow('its schema is version 99, this program knows version 1');
});

test('calls after closing reject as unavailable', async () => {
  const store = await open(newFile());
  await store.close();
  await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreUnavailableError);
  await expect(store.windows.reserve(request())).rejects.toBeInstanceOf(StoreUnavailableError);
});
