/**
 * A certificate that was replaced while the gateway was reading the one before it was used up to a minute late: the end of
 * the reading cancelled the look that the change had asked for. So was one that was replaced between the first reading
 * and the first watch; and in a folder where something else changed all the time, a new one was not noticed at all.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setInterval } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { watchCertificate } from '../../src/http/tls/watch-certificate.ts';
import { createCertificate } from '../support/certificates.ts';

/** Far below the minute after which the files are read in any case. */
const first = createCertificate({ name: 'one.example' });
const second = createCertificate({ name: 'two.example' });
const third = createCertificate({ name: 'three.example' });

async function watchedCertificate() {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-certificate-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
  const refusals: string[] = [];
  const watch = new AbortController();
  onTestFinished(() => watch.abort());
  let used: string | undefined;
  const start = async () => {
    const { keys } = await watchCertificate({
      ...files,
      onReplaced: (replacement) => {
        used = replacement.keys.cert;
      },
      onRefused: (fault) => void refusals.push(fault),
      signal: watch.signal,
    });
    used = keys.cert;
  };
  return { folder, ...files, start, used: () => used, refusals };
}

/** The key file is a pipe, so that a reading of the pair lasts until a key is given. */
async function withHeldKey() {
  const watched = await watchedCertificate();
  const { folder, keyFile } = watched;
  execFileSync('mkfifo', [keyFile]);
  await writeFile(watched.certFile, first.cert);
  return {
    ...watched,
    /** While the gateway reads: it has read the certificate and waits for the key. */
    async giveKey(key: string, meanwhile = async () => {}) {
      const pipe = await open(keyFile, 'w');
      await meanwhile();
      await pipe.writeFile(key);
      await pipe.close();
    },
    /** Resolves when a watch on the folder has seen it. */
    async putCertificate({ cert }: { cert: string }) {
      const witness = watch(folder);
      const seen = once(witness, 'change');
      await writeFile(watched.certFile, cert);
      await seen;
      witness.close();
    },
  };
}

const onPosix = it.skipIf(process.platform === 'win32');

onPosix('a pair that is replaced while the one before is read is used at once', async () => {
  const { start, used, refusals, giveKey, putCertificate } = await withHeldKey();
  const started = start();
  await giveKey(first.key);
  await started;

  await putCertificate(second);
  await giveKey(third.key, () => putCertificate(third));
  await expect.poll(() => refusals).toHaveLength(1);
  await giveKey(third.key);
  await expect.poll(used).toBe(third.cert);
});

onPosix('a pair that is replaced while the first one is read is used at once', async () => {
  const { start, used, giveKey, putCertificate } = await withHeldKey();
  const started = start();
  await giveKey(first.key, () => putCertificate(second));
  await started;
  await giveKey(second.key);
  await expect.poll(used).toBe(second.cert);
});

it('a new pair is used at once although something else in its folder changes all the time', async () => {
  const { folder, certFile, keyFile, start, used } = await watchedCertificate();
  await writeFile(certFile, first.cert);
  await writeFile(keyFile, first.key);
  await start();
  let isUsed = false;
  const beBusy = async () => {
    for await (const _ of setInterval(50)) {
      if (isUsed) return;
      await writeFile(join(folder, 'busy'), '');
    }
  };
  const busy = beBusy();
  await writeFile(keyFile, second.key);
  await writeFile(certFile, second.cert);
  try {
    await expect.poll(used).toBe(second.cert);
  } finally {
    isUsed = true;
    await busy;
  }
});
