import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { EMBEDDED_STORE, STORES, type StoreKind, startTestGateway } from '../support/gateway.ts';
import { startProgram } from '../support/process.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { startSystem } from '../support/system.ts';

const BODY = 'x'.repeat(100_000);

/** One request over the agent's connections; rejects when the answer is not complete. */
async function read(agent: Agent, url: string, key: string) {
  const req = get(`${url}/v1/conversations`, { agent, headers: bearer(key) });
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  return { status: res.statusCode, body: await text(res), closes: res.headers.connection === 'close' };
}

function keepAliveAgent(): Agent {
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  return agent;
}

/** A backend's answers that wait until they are let go. */
function heldAnswers() {
  const held: ServerResponse[] = [];
  return {
    hold: (_req: IncomingMessage, res: ServerResponse) => void held.push(res),
    count: () => held.length,
    release: () => {
      for (const res of held.splice(0)) res.end(BODY);
    },
  };
}

function fateOfNewConnection(url: string): Promise<'accepted' | 'refused'> {
  return fetch(url).then(
    () => 'accepted',
    () => 'refused',
  );
}

describe.each(STORES)('a gateway over $name that is closed', (store) => {
  it('is not ready at once, still serves for a while, completes requests in progress, and exits', async () => {
    const answers = heldAnswers();
    const config = { shutdown: { not_ready_ms: 500, drain_ms: 10_000 } };
    const { gateway, key } = await startSystem({ store, answer: answers.hold, config });
    const agent = keepAliveAgent();
    const underWay = Array.from({ length: 20 }, () => read(agent, gateway.public, key));
    await expect.poll(answers.count).toBe(20);

    const closed = gateway.close();
    const readiness = await fetch(`${gateway.ops}/readyz`);
    expect(readiness.status).toBe(503);
    expect(await readiness.json()).toEqual({ status: 'not_ready', reasons: ['draining'] });
    expect((await fetch(`${gateway.ops}/livez`)).status).toBe(200);
    // A load balancer that has not noticed yet sends more.
    underWay.push(read(keepAliveAgent(), gateway.public, key));
    await expect.poll(answers.count).toBe(21);

    await expect.poll(() => fateOfNewConnection(gateway.public)).toBe('refused');
    expect((await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used).toBe(21);
    answers.release();
    for (const { status, body } of await Promise.all(underWay)) {
      expect(status).toBe(200);
      expect(body).toBe(BODY);
    }
    await closed;
    for (const url of [gateway.public, gateway.ops, gateway.admin ?? '']) await expect(fetch(url)).rejects.toThrow();
  });
});

it('responses to requests in progress close their connection, so that no client sends its next request on a closing one', async () => {
  const answers = heldAnswers();
  const { gateway, key } = await startSystem({ answer: answers.hold });
  const head = `GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n`;
  const requests = [
    `${head}\r\n`,
    `${head}Connection: keep-alive\r\n\r\n`,
    `${head}Expect: 100-continue\r\n\r\n`,
    `${head}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`,
  ];
  const underWay = requests.map((bytes) => exchangeRaw(gateway.public, bytes));
  await expect.poll(answers.count).toBe(4);
  const closed = gateway.close();
  await expect.poll(() => fateOfNewConnection(gateway.public)).toBe('refused');
  answers.release();
  for (const { status, headers, closed } of await Promise.all(underWay)) {
    expect({ status, connection: headers.connection, closed }).toEqual({
      status: 200,
      connection: 'close',
      closed: true,
    });
  }
  await closed;
});

it('a connection whose response headers had promised keep-alive can be used once more', async () => {
  const answers = heldAnswers();
  const { gateway, key } = await startSystem({
    answer(req, res) {
      res.setHeader('Content-Length', BODY.length).flushHeaders();
      answers.hold(req, res);
    },
    config: { shutdown: { not_ready_ms: 1000, drain_ms: 10_000 } },
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const req = get(`${gateway.public}/v1/conversations`, { agent, headers: bearer(key) });
  const [begun] = (await once(req, 'response')) as [IncomingMessage];
  const closed = gateway.close();
  answers.release();
  expect(begun.headers.connection).toBe('keep-alive');
  expect(await text(begun)).toBe(BODY);

  const next = read(agent, gateway.public, key);
  await expect.poll(answers.count).toBe(1);
  answers.release();
  expect(await next).toEqual({ status: 200, body: BODY, closes: true });
  await closed;
});

it('no request of clients that continue to send over kept connections is lost', async () => {
  const { gateway, key } = await startSystem({
    answer: (_req, res) => void setTimeout(() => res.end(BODY), 5),
    config: { shutdown: { not_ready_ms: 300, drain_ms: 10_000 } },
  });
  let served = 0;
  let failed = 0;
  /** Sends one request after the other until its connection is ended by the gateway. */
  async function caller(): Promise<void> {
    const agent = keepAliveAgent();
    for (;;) {
      const answer = await read(agent, gateway.public, key).catch(() => undefined);
      if (answer?.status === 200 && answer.body === BODY) served++;
      else failed++;
      if (answer === undefined || answer.closes) return;
    }
  }
  const callers = Array.from({ length: 10 }, caller);
  await expect.poll(() => served).toBeGreaterThan(20);
  await gateway.close();
  await Promise.all(callers);
  expect(failed).toBe(0);
});

it('requests still in progress at the deadline are aborted', async () => {
  const answers = heldAnswers();
  const config = { shutdown: { not_ready_ms: 1, drain_ms: 100 } };
  const { gateway, key } = await startSystem({ answer: answers.hold, config });
  const underWay = read(keepAliveAgent(), gateway.public, key);
  const outcome = expect(underWay).rejects.toThrow();
  await expect.poll(answers.count).toBe(1);
  await gateway.close();
  await outcome;
});

describe('the process', () => {
  /** A gateway process in front of a backend that holds its answers, with one request under way. */
  async function startBusyProcess(kind: StoreKind) {
    const store = await kind.start();
    onTestFinished(() => store.close());
    const answers = heldAnswers();
    const backend = await startBackend(answers.hold);
    onTestFinished(() => backend.close());
    const preparing = await startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url });
    const key = await createCustomerWithKey(preparing, { id: 'acme', plan: 'starter' });
    await preparing.close();

    const folder = await mkdtemp(join(tmpdir(), 'tollgate-shutdown-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'gateway.yaml');
    const anyPort = { host: '127.0.0.1', port: 0 };
    const sections = {
      listen: anyPort,
      ops: anyPort,
      // A process that has just started is slow on a busy machine; the store is not what is tested.
      store: { url: store.url, timeout_ms: 5000 },
      upstream: { urls: [backend.url] },
      shutdown: { not_ready_ms: 50, drain_ms: 15_000 },
    };
    await writeFile(file, stringify(sections));
    const gateway = await startProgram({ args: ['--config', file] });
    const underWay = read(keepAliveAgent(), gateway.public, key);
    await expect.poll(answers.count).toBe(1);
    return { gateway, answers, underWay };
  }

  it.each(STORES)('over $name exits with status 0 on SIGTERM, after the last response', async (store) => {
    const { gateway, answers, underWay } = await startBusyProcess(store);
    gateway.signal('SIGTERM');
    await expect.poll(gateway.output).toContain('no longer ready');
    answers.release();
    expect(await underWay).toMatchObject({ status: 200, body: BODY });
    const { status, stdout, stderr } = await gateway.finished;
    expect(status).toBe(0);
    expect(stderr).toBe('');
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.at(-1)).toMatchObject({ msg: 'tollgate stopped' });
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'request', status: 200 }));
  });

  it('ends at once on a second signal', async () => {
    const { gateway, underWay } = await startBusyProcess(EMBEDDED_STORE);
    const outcome = expect(underWay).rejects.toThrow();
    gateway.signal('SIGINT');
    await expect.poll(gateway.output).toContain('no longer ready');
    gateway.signal('SIGINT');
    expect((await gateway.finished).status).toBe(1);
    await outcome;
  });
});
