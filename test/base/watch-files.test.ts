/** Writes of other programs into the folder of a watched file, such as an embedded database, do not make it read again. */
import { watch } from 'node:fs';
import { appendFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { watchFiles } from '../../src/base/watch-files.ts';

/** Longer than changes can be left unread. */
const SETTLED_MS = 1000;
const NEVER_MS = 3_600_000;

test('a file is read again when it changes, and not when the content of another one in its folder does', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-watch-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [file, database] = [join(folder, 'gateway.yaml'), join(folder, 'store.sqlite-wal')];
  for (const each of [file, database]) await writeFile(each, '');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  const check = vi.fn(async () => {});
  await watchFiles({ files: [file], pollMs: NEVER_MS, check, signal: ending.signal });
  const seen: (string | null)[] = [];
  watch(folder, { signal: ending.signal }, (_event, name) => void seen.push(name));
  /** Resolves when the change was noticed, and read again if it is going to be. */
  const settled = async (name: string) => {
    while (!seen.includes(name)) await setImmediate();
    await setImmediate();
    await vi.advanceTimersByTimeAsync(SETTLED_MS);
  };

  await appendFile(database, 'page');
  await settled('store.sqlite-wal');
  expect(check).toHaveBeenCalledTimes(1);
  await appendFile(file, '# changed');
  await settled('gateway.yaml');
  expect(check).toHaveBeenCalledTimes(2);
  // A folder that is switched, as Kubernetes does, has another name.
  await rename(database, join(folder, '..data'));
  await settled('..data');
  expect(check).toHaveBeenCalledTimes(3);
});
