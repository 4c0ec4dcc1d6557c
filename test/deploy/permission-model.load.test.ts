/** The options of docs/deploy.md that turn on Node.js's permission model, without the image. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { startCollector } from '../observability/tracing/collector.ts';
import { callAdmin, postPreview } from '../support/admin.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { startProgram } from '../support/process.ts';
import { startRedis } from '../support/redis-server.ts';
import { REPOSITORY } from './support/dockerfile.ts';

test.each([1, 2])(
  'under them, %i process(es) serve the console, previews and reloads, and export traces',
  async (workers) => {
    const collector = await startCollector();
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-permissions-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const page = readFileSync(join(REPOSITORY, 'docs/deploy.md'), 'utf8');
    const options = String(/^-e NODE_OPTIONS='(.*)'$/m.exec(page)?.[1])
      .replace('=/app ', `=${REPOSITORY} `)
      .replace('=/etc/tollgate ', `=${folder} `);
    const file = join(folder, 'gateway.yaml');
    const anyPort = { host: '127.0.0.1', port: 0 };
    const content = stringify({
      workers,
      listen: anyPort,
      ops: anyPort,
      admin: { ...anyPort, token: ADMIN_TOKEN },
      store: { url: redis.url },
      upstream: { urls: ['http://127.0.0.1:9'] },
      tracing: { endpoint: collector.endpoint, sample_ratio: 1 },
    });
    writeFileSync(file, content);
    const gateway = await startProgram({ args: ['--config', file], env: { NODE_OPTIONS: options } });

    expect((await fetch(`${gateway.public}/v1/conversations`)).status).toBe(401);
    expect((await fetch(`${gateway.admin}/console/`)).status).toBe(200);
    const script = /src="([^"]+)"/.exec(await (await fetch(`${gateway.admin}/console/`)).text())?.[1];
    expect((await fetch(new URL(String(script), `${gateway.admin}/console/`))).status).toBe(200);
    const preview = await postPreview(gateway, content);
    expect(preview.status).toBe(200);
    writeFileSync(file, `${content}logging: { access: errors }\n`);
    const reload = await callAdmin(gateway, '/admin/v1/config/reload', { method: 'POST' });
    expect(reload.status).toBe(200);
    await expect.poll(() => collector.spans.length, { timeout: 20_000 }).toBeGreaterThan(0);
  },
);
