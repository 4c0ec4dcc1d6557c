/** The commands for notices that are not delivered, over both stores. */

import { writeFile } from 'node:fs/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { STORES, startTestGateway } from '../support/gateway.ts';
import { startNoticeReceiver } from '../support/notice-receiver.ts';
import { tollgateHereFor } from './support.ts';

const PATIENCE = { timeout: 30_000, interval: 50 };

describe.each(STORES)('over $name', (kind) => {
  it('lists a notice that is not delivered with its last error, and sends it again', async () => {
    let status = 500;
    const receiver = await startNoticeReceiver((res) => void res.writeHead(status).end());
    const store = await kind.start();
    onTestFinished(() => store.close());
    const backend = await startBackend();
    onTestFinished(() => backend.close());
    const gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url });
    onTestFinished(() => gateway.close());
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 10 });
    const read = async () => (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status;
    const tollgate = tollgateHereFor(gateway);
    const succeed = async (...args: string[]) => {
      const result = await tollgate(...args);
      expect(result).toMatchObject({ status: 0 });
      return result;
    };

    expect(await tollgate('notices', 'test')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('The configuration has no endpoints'),
    });
    // Notices begin with a reload.
    await writeFile(gateway.file, stringify({ ...gateway.sections, notices: receiver.config }));
    expect(['applied', 'unchanged']).toContain((await gateway.reload('admin')).result);
    expect(await succeed('notices', 'list')).toMatchObject({ stdout: '' });
    const failed = await tollgate('notices', 'test');
    expect(failed).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(/ failed +the response had status 500$/m),
    });
    expect(await tollgate('notices', 'test', '--customer', 'acme')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('The customer lacks a notify_url or its secret'),
    });
    status = 200;
    expect((await succeed('notices', 'test')).stdout).toMatch(/^ENDPOINT +RESULT +REASON\n.* delivered$/m);
    expect(receiver.received.at(-1)).toMatchObject({ type: 'test', data: {} });
    status = 500;
    for (let i = 0; i < 9; i++) expect(await read()).toBe(200);
    const listed = async () => JSON.parse((await succeed('notices', 'list', '--json')).stdout).items;
    await expect.poll(async () => (await listed())[0]?.deliveries[0]?.last_error, PATIENCE).toContain('status 500');
    const [{ id }] = await listed();
    const table = (await succeed('notices', 'list', '--state', 'pending')).stdout;
    expect(table).toMatch(/^ID +TYPE +CUSTOMER +CREATED +ENDPOINT +STATE +ATTEMPTS +NEXT +LAST ERROR$/m);
    expect(table).toMatch(new RegExp(`^${id} +quota.threshold +acme .*pending +1 .*the response had status 500$`, 'm'));
    expect((await succeed('notices', 'list', '--state', 'dead')).stdout).not.toContain(id);

    status = 200;
    expect((await succeed('notices', 'retry', id)).stderr).toContain(id);
    await expect.poll(listed, PATIENCE).toEqual([]);
    expect(receiver.received.at(-1)).toMatchObject({ id, data: { customer: 'acme', plan: 'enterprise', limit: 10 } });
    const { body: audit } = await callAdmin(gateway, '/admin/v1/audit?action=notice.retry');
    expect(audit.items).toMatchObject([{ actor: 'token', customer: 'acme', details: { notice: id } }]);
    expect(await tollgate('notices', 'retry', id)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('no undelivered notice'),
    });
  });
});
