import { errors, jwtVerify } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { KeySetUnavailableError, RemoteKeySet } from '../../../src/control/admin/remote-key-set.ts';
import { createLogger } from '../../../src/observability/logger.ts';
import { HeldClock } from '../../customers/keys/held-clock.ts';
import { createIssuerKey, type IssuerKey, notFound, sign, startIssuer } from './issuer.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const A_WHILE_MS = 10_000;

/** A key set on a held clock; what it plans to do happens when the test says so. */
function openKeySet(url: string) {
  const clock = new HeldClock();
  const logs: Record<string, unknown>[] = [];
  let planned: { atMs: number; action: () => void } | undefined;
  const keys = new RemoteKeySet({
    url,
    clock,
    scheduler: {
      after(delayMs, action) {
        const plan = { atMs: clock.monotonicMs() + delayMs, action };
        planned = plan;
        return {
          cancel() {
            if (planned === plan) planned = undefined;
          },
        };
      },
    },
    logger: createLogger({ level: 'info', destination: { write: (line) => void logs.push(JSON.parse(line)) } }),
  });
  onTestFinished(() => keys.close());
  return {
    clock,
    keys,
    logs,
    /** Lets the time pass, and does what is due then. */
    pass(ms: number): void {
      clock.advance(ms);
      const due = planned;
      if (due === undefined || due.atMs > clock.monotonicMs()) return;
      planned = undefined;
      due.action();
    },
    /** How long the next load is away. */
    nextLoadMs: () => (planned === undefined ? undefined : planned.atMs - clock.monotonicMs()),
    async accepts(key: IssuerKey): Promise<boolean> {
      try {
        await jwtVerify(await sign(key, {}), keys.keyFor);
        return true;
      } catch (error) {
        if (error instanceof errors.JWKSNoMatchingKey) return false;
        throw error;
      }
    },
  };
}

type KeySet = ReturnType<typeof openKeySet>;

/** Resolves when a load has ended; which is when the next one is planned. */
async function loadEnded(set: KeySet): Promise<void> {
  await expect.poll(() => set.nextLoadMs(), { interval: 1 }).toBeDefined();
}

const OLD = await createIssuerKey('old');
const NEW = await createIssuerKey('new');

describe('while the address answers', () => {
  it('the keys are loaded at start, not for every token', async () => {
    const issuer = await startIssuer(OLD);
    const set = openKeySet(issuer.url);
    set.keys.start();
    await loadEnded(set);
    for (let i = 0; i < 5; i++) expect(await set.accepts(OLD)).toBe(true);
    expect(issuer.asked).toBe(1);
  });

  it('they are loaded anew in the background: a withdrawn key is gone five minutes later', async () => {
    const issuer = await startIssuer(OLD, NEW);
    const set = openKeySet(issuer.url);
    set.keys.start();
    await loadEnded(set);
    issuer.publish(NEW);
    set.pass(5 * MINUTE_MS - 1);
    expect(await set.accepts(OLD)).toBe(true);
    expect(issuer.asked).toBe(1);
    set.pass(1);
    await loadEnded(set);
    expect(issuer.asked).toBe(2);
    expect(await set.accepts(OLD)).toBe(false);
    expect(await set.accepts(NEW)).toBe(true);
  });

  it('a key that has just been published is found at once', async () => {
    const issuer = await startIssuer(OLD);
    const set = openKeySet(issuer.url);
    set.keys.start();
    await loadEnded(set);
    issuer.publish(OLD, NEW);
    set.clock.advance(A_WHILE_MS);
    expect(await set.accepts(NEW)).toBe(true);
  });

  it('unknown keys make it load once in five seconds, however many there are', async () => {
    const issuer = await startIssuer(OLD);
    const set = openKeySet(issuer.url);
    set.keys.start();
    await loadEnded(set);
    set.clock.advance(A_WHILE_MS);
    const accepted = await Promise.all(Array.from({ length: 50 }, () => set.accepts(NEW)));
    expect(accepted).not.toContain(true);
    set.clock.advance(4999);
    expect(await set.accepts(NEW)).toBe(false);
    expect(issuer.asked).toBe(2);
    set.clock.advance(1);
    expect(await set.accepts(NEW)).toBe(false);
    expect(issuer.asked).toBe(3);
  });
});

describe('while the address is unavailable', () => {
  it('a token is neither good nor bad before there are keys', async () => {
    const issuer = await startIssuer();
    issuer.answer = notFound;
    const set = openKeySet(issuer.url);
    set.keys.start();
    await expect(set.accepts(OLD)).rejects.toThrow(KeySetUnavailableError);
    issuer.publish(OLD);
    set.pass(A_WHILE_MS);
    expect(await set.accepts(OLD)).toBe(true);
  });

  it('the last valid keys are used for an hour, and no longer', async () => {
    const issuer = await startIssuer(OLD);
    const set = openKeySet(issuer.url);
    set.keys.start();
    await loadEnded(set);
    issuer.answer = notFound;
    set.pass(HOUR_MS - 1);
    await loadEnded(set);
    expect(await set.accepts(OLD)).toBe(true);
    set.pass(1);
    await expect(set.accepts(OLD)).rejects.toThrow(KeySetUnavailableError);
    issuer.publish(OLD);
    set.pass(A_WHILE_MS);
    expect(await set.accepts(OLD)).toBe(true);
  });

  it('a key that is not among the last good ones may be a new one', async () => {
    const issuer = await startIssuer(OLD);
    const set = openKeySet(issuer.url);
    set.keys.start();
    await loadEnded(set);
    issuer.answer = notFound;
    set.clock.advance(A_WHILE_MS);
    await expect(set.accepts(NEW)).rejects.toThrow(KeySetUnavailableError);
    await expect(set.accepts(NEW)).rejects.toThrow(KeySetUnavailableError);
    expect(issuer.asked).toBe(2);
  });

  it('it is tried again every ten seconds, and logged once, and once more when it is back', async () => {
    const issuer = await startIssuer(OLD);
    const set = openKeySet(issuer.url);
    set.keys.start();
    await loadEnded(set);
    issuer.answer = notFound;
    set.pass(5 * MINUTE_MS);
    for (let asked = 2; asked <= 4; asked++) {
      await loadEnded(set);
      expect(issuer.asked).toBe(asked);
      expect(set.nextLoadMs()).toBe(10_000);
      set.pass(10_000);
    }
    await loadEnded(set);
    issuer.publish(OLD);
    set.pass(10_000);
    await loadEnded(set);
    expect(set.nextLoadMs()).toBe(5 * MINUTE_MS);
    expect(set.logs).toMatchObject([
      { level: 'error', accepted_for_seconds: 55 * 60, err: { message: 'the response has status 404' } },
      { level: 'info', msg: 'the keys of admin.jwt.jwks_url are loaded again' },
    ]);
  });
});

describe('what is no key set changes nothing', () => {
  it.each([
    ['a page', '<html>'],
    ['another document', '{"keys":7}'],
    ['an endless answer', JSON.stringify({ keys: [], more: 'x'.repeat(262_144) })],
  ])('%s', async (_what, body) => {
    const issuer = await startIssuer(OLD);
    const set = openKeySet(issuer.url);
    set.keys.start();
    await loadEnded(set);
    issuer.answer = (_req, res) => res.end(body);
    set.pass(5 * MINUTE_MS);
    await loadEnded(set);
    expect(set.logs).toMatchObject([{ level: 'error' }]);
    expect(await set.accepts(OLD)).toBe(true);
  });

  it('a redirect, wherever it leads', async () => {
    const [issuer, other] = [await startIssuer(OLD), await startIssuer(NEW)];
    const set = openKeySet(issuer.url);
    set.keys.start();
    await loadEnded(set);
    issuer.answer = (_req, res) => res.writeHead(302, { Location: other.url }).end();
    set.clock.advance(A_WHILE_MS);
    await expect(set.accepts(NEW)).rejects.toThrow(KeySetUnavailableError);
    expect(other.asked).toBe(0);
  });

  it('a response that takes more than five seconds', async () => {
    const issuer = await startIssuer();
    issuer.answer = (_req, res) => res.write('{"keys":');
    const set = openKeySet(issuer.url);
    const since = performance.now();
    await expect(set.accepts(OLD)).rejects.toThrow(KeySetUnavailableError);
    expect(performance.now() - since).toBeGreaterThan(4900);
    expect(set.logs).toMatchObject([{ level: 'error', err: { type: 'TimeoutError' } }]);
  });
});

it('closing aborts a load in progress, without a log line', async () => {
  const issuer = await startIssuer();
  let closed = false;
  issuer.answer = (_req, res) => {
    res.on('close', () => {
      closed = true;
    });
  };
  const set = openKeySet(issuer.url);
  set.keys.start();
  await expect.poll(() => issuer.asked).toBe(1);
  set.keys.close();
  await expect.poll(() => closed).toBe(true);
  expect(set.logs).toEqual([]);
  expect(set.nextLoadMs()).toBeUndefined();
});
