import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { callAdmin } from '../support/admin.ts';
import { STORES } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem, type TestSystem } from '../support/system.ts';

/** A connection that asks for the list and takes what comes. */
function ask({ gateway, key }: TestSystem): Socket {
  const { hostname, port } = new URL(gateway.public);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {}).resume();
  socket.write(`GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  return socket;
}

function used({ gateway }: TestSystem) {
  return async () => (await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used;
}

const LEFT = 'route="/api/v1/conversations",method="GET",code="499",source="gateway",plan="starter"';

describe.each(STORES)('a client that disconnects, over $name', (store) => {
  it('ends its request to the backend within 100 ms, and uses one unit', async () => {
    let arrived = Promise.withResolvers<ServerResponse>();
    const answer = (_req: IncomingMessage, res: ServerResponse) => arrived.resolve(res);
    const system = await startSystem({ store, answer });
    const tookMs: number[] = [];
    // The best of several: a busy machine may delay some.
    for (let round = 0; round < 5; round++) {
      arrived = Promise.withResolvers();
      const caller = ask(system);
      const res = await arrived.promise;
      const ended = new Promise((resolve) => res.once('close', resolve));
      const leftAtMs = performance.now();
      caller.destroy();
      await ended;
      tookMs.push(performance.now() - leftAtMs);
    }
    expect(Math.min(...tookMs)).toBeLessThan(100);
    const { gateway, backend } = system;
    await expect.poll(() => readMetric(gateway, 'tollgate_http_requests_total')).toEqual({ [LEFT]: 5 });
    expect(await readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 0 });
    expect(await readMetric(gateway, 'tollgate_refusals_total')).toEqual({});
    const lines = gateway.logs.filter(({ msg }) => msg === 'request');
    expect(lines).toHaveLength(5);
    for (const line of lines)
      expect(line).toMatchObject({ status: 499, source: 'gateway', quota: expect.stringMatching(/^(lease|store)$/) });
    expect(backend.seen).toHaveLength(5);
    expect(await used(system)()).toBe(5);
  });

  it('in the middle of the response aborts the backend too, and counts with the status that it got', async () => {
    const begun = Promise.withResolvers<ServerResponse>();
    const system = await startSystem({
      store,
      answer: (_req, res) => {
        res.writeHead(200).write('the beginning');
        begun.resolve(res);
      },
    });
    const caller = ask(system);
    const res = await begun.promise;
    const ended = new Promise((resolve) => res.once('close', resolve));
    caller.once('data', () => caller.destroy());
    await ended;
    await expect
      .poll(() => readMetric(system.gateway, 'tollgate_http_requests_total'))
      .toEqual({ [LEFT.replace('499', '200').replace('gateway', 'upstream')]: 1 });
    expect(await used(system)()).toBe(1);
  });

  it('before its request was sent uses no unit', async () => {
    const held = Promise.withResolvers<ServerResponse>();
    const answer = (_req: IncomingMessage, res: ServerResponse) => held.resolve(res);
    const system = await startSystem({ store, answer, config: { upstream: { max_connections: 1 } } });
    const first = ask(system);
    const res = await held.promise;
    const second = ask(system);
    // It has its unit now and waits for the only connection.
    await expect.poll(used(system), { interval: 10 }).toBe(2);
    second.destroy();
    await expect.poll(used(system), { interval: 10 }).toBe(1);
    expect(await readMetric(system.gateway, 'tollgate_http_requests_total')).toEqual({ [LEFT]: 1 });
    res.end();
    await new Promise((resolve) => first.once('data', resolve));
    first.destroy();
    expect(system.backend.seen).toHaveLength(1);
  });
});
