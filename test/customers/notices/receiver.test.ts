/** The receiver of docs/notices.md accepts what the gateway sends, and nothing else. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createDeliver } from '../../../src/customers/notices/delivery.ts';
import { operatorEndpoint } from '../../../src/customers/notices/endpoints.ts';
import { bodyOf, newNotice, parseNotice } from '../../../src/customers/notices/notice.ts';
import { newWebhookSecret, parseWebhookSecret, signatureHeaders } from '../../../src/formats/webhook-signature.ts';

const SECRET = newWebhookSecret();
const FORMER_SECRET = newWebhookSecret();
let url: string;
let output = '';
let stop: () => Promise<void>;

beforeAll(async () => {
  const page = await readFile(new URL('../../../docs/notices.md', import.meta.url), 'utf8');
  const [, program = ''] = /```js\n(.*?)```/s.exec(page) ?? [];
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-receiver-'));
  const report = "\nserver.on('listening', () => console.log(server.address().port));\n";
  await writeFile(join(folder, 'receiver.mjs'), program + report);
  const env = { PATH: process.env.PATH, WEBHOOK_SECRET: SECRET, PORT: '0' };
  const receiver = spawn(process.execPath, [join(folder, 'receiver.mjs')], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  receiver.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  stop = async () => {
    receiver.kill();
    await once(receiver, 'exit');
    await rm(folder, { recursive: true });
  };
  await once(receiver.stdout, 'data');
  url = `http://127.0.0.1:${Number.parseInt(output, 10)}/hooks`;
  output = '';
});
afterAll(() => stop());

const deliver = createDeliver({ clock: systemClock, closing: new AbortController().signal });

function send(secrets: string[], message: { id: string; body: string }) {
  return deliver(operatorEndpoint({ url, secrets, allowPrivate: true }), message);
}

function message(customer: string) {
  const { id, content } = newNotice('quota.exceeded', Date.now(), { customer, plan: 'starter' });
  const parsed = parseNotice(content);
  return { id, body: parsed ? bodyOf(parsed) : '' };
}

describe('the receiver of the documentation', () => {
  test('accepts a notice, and does its work once', async () => {
    const notice = message('acme');
    expect(await send([SECRET], notice)).toEqual({ kind: 'delivered' });
    expect(await send([SECRET], notice)).toEqual({ kind: 'delivered' });
    expect(await send([SECRET], message('globex'))).toEqual({ kind: 'delivered' });
    await expect.poll(() => output).toBe('quota.exceeded acme\nquota.exceeded globex\n');
  });

  test('accepts a notice with two signatures while a secret is rotated', async () => {
    expect(await send([FORMER_SECRET, SECRET], message('acme'))).toEqual({ kind: 'delivered' });
  });

  test('refuses another secret', async () => {
    expect(await send([FORMER_SECRET], message('acme'))).toMatchObject({ reason: 'the response had status 401' });
  });

  test.each<[string, (headers: Record<string, string>) => Record<string, string>]>([
    ['no signature', ({ 'webhook-signature': _, ...headers }) => headers],
    ['another id', (headers) => ({ ...headers, 'webhook-id': 'msg_other' })],
    [
      'another timestamp',
      (headers) => ({ ...headers, 'webhook-timestamp': String(Math.floor(Date.now() / 1000) + 9) }),
    ],
    ['no timestamp', ({ 'webhook-timestamp': _, ...headers }) => headers],
    [
      'a signature of another version',
      (headers) => {
        return { ...headers, 'webhook-signature': headers['webhook-signature']?.replace('v1,', 'v2,') ?? '' };
      },
    ],
  ])('refuses %s', async (_what, change) => {
    const { id, body } = message('acme');
    const keys = [SECRET].flatMap((secret) => parseWebhookSecret(secret) ?? []);
    const headers = { ...signatureHeaders({ id, body }, keys, Date.now()) };
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(204);
    expect((await fetch(url, { method: 'POST', headers: change(headers), body })).status).toBe(401);
  });

  test('refuses another body, and a request that was recorded long ago', async () => {
    const { id, body } = message('acme');
    const keys = [SECRET].flatMap((secret) => parseWebhookSecret(secret) ?? []);
    const now = { ...signatureHeaders({ id, body }, keys, Date.now()) };
    expect((await fetch(url, { method: 'POST', headers: now, body: `${body} ` })).status).toBe(401);
    const old = { ...signatureHeaders({ id, body }, keys, Date.now() - 600_000) };
    expect((await fetch(url, { method: 'POST', headers: old, body })).status).toBe(401);
  });
});
