/**
 * The ops listener is open to whoever reaches it, and an exposition costs milliseconds of the event loop that serves
 * callers. Unbounded, 64 connections that scrape in a loop raised the median response time of callers from 1.3 to 455 ms.
 * Idle and slow connections on the ops and admin listeners had only the defaults of Node.js: no limit to their number,
 * and minutes for their headers.
 */
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { limitExpositions } from '../../src/observability/exposition-limit.ts';
import { EMBEDDED_STORE, startTestGateway, type TestGateway } from '../support/gateway.ts';

describe('an exposition', () => {
  function createLimited() {
    let nowMs = 0;
    let made = 0;
    let finish = () => {};
    const timers: { readonly atMs: number; readonly action: () => void }[] = [];
    const expose = () =>
      new Promise<string>((resolve) => {
        made++;
        const text = `exposition ${made}`;
        finish = () => resolve(text);
      });
    const limited = limitExpositions(
      expose,
      { monotonicMs: () => nowMs },
      {
        after(delayMs, action) {
          timers.push({ atMs: nowMs + delayMs, action });
          return { cancel() {} };
        },
      },
    );
    return {
      scrape: limited,
      made: () => made,
      finish: () => finish(),
      async advance(ms: number) {
        nowMs += ms;
        const due = timers.filter(({ atMs }) => atMs <= nowMs);
        for (const timer of due) timers.splice(timers.indexOf(timer), 1);
        for (const { action } of due) action();
        await new Promise(setImmediate);
      },
    };
  }

  it('in progress is shared by every scrape that comes meanwhile, and the next scrape gets a new one', async () => {
    const limited = createLimited();
    const scrapes = Array.from({ length: 64 }, () => limited.scrape());
    limited.finish();
    expect(new Set(await Promise.all(scrapes))).toEqual(new Set(['exposition 1']));
    const next = limited.scrape();
    limited.finish();
    expect(await next).toBe('exposition 2');
  });

  it('is waited for by 64 scrapes at most; others get the last one, and keep no connection busy', async () => {
    const limited = createLimited();
    const first = limited.scrape();
    limited.finish();
    await first;
    const waiting = Array.from({ length: 64 }, () => limited.scrape());
    expect(await limited.scrape()).toBe('exposition 1');
    limited.finish();
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['exposition 2']));
  });

  it('begins at most once a second in a flood, and one second later for those who waited', async () => {
    const limited = createLimited();
    const scrapeNow = async () => {
      const scrape = limited.scrape();
      limited.finish();
      await scrape;
    };
    for (let i = 0; i < 20; i++) await scrapeNow();
    for (let second = 1; second <= 3; second++) {
      const waiting = Array.from({ length: 64 }, () => limited.scrape());
      await limited.advance(999);
      expect(limited.made()).toBe(20 + second - 1);
      await limited.advance(1);
      limited.finish();
      expect(new Set(await Promise.all(waiting))).toEqual(new Set([`exposition ${20 + second}`]));
    }
    await limited.advance(20_000);
    for (let i = 0; i < 20; i++) await scrapeNow();
    expect(limited.made()).toBe(43);
  });
});

describe('the ops and the admin listener', () => {
  let gateway: TestGateway | undefined;
  const sockets: Socket[] = [];
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await gateway?.close();
  });

  it('answer a probe though more connections are open than they take', async () => {
    const store = await EMBEDDED_STORE.start();
    gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: 'http://127.0.0.1:9' });
    for (const [url, path] of [
      [gateway.ops, '/livez'],
      [gateway.admin, '/status'],
    ] as const) {
      const { port } = new URL(url ?? '');
      let closed = 0;
      for (let i = 0; i < 300; i++) {
        const socket = connect(Number(port), '127.0.0.1').on('error', () => {});
        socket.once('close', () => closed++);
        sockets.push(socket);
      }
      expect((await fetch(url + path)).status).toBe(path === '/livez' ? 200 : 401);
      await expect.poll(() => closed).toBeGreaterThanOrEqual(300 - 256);
    }
    await store.close();
  });

  it('close a connection whose request does not arrive within five seconds', async () => {
    const store = await EMBEDDED_STORE.start();
    gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: 'http://127.0.0.1:9' });
    const beganMs = performance.now();
    await Promise.all(
      [gateway.ops, gateway.admin].map(
        (url) =>
          new Promise<void>((resolve) => {
            const socket = connect(Number(new URL(url ?? '').port), '127.0.0.1', () =>
              socket.write('GET / HTTP/1.1\r\nHo'),
            );
            socket.resume().once('close', () => resolve());
          }),
      ),
    );
    expect(performance.now() - beganMs).toBeLessThan(20_000);
    await store.close();
  });
});
