/** The content of the image, laid out in a folder, and its commands as processes: without a container. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startBackend } from '../support/backend.ts';
import { startRedis } from '../support/redis-server.ts';
import { layOutImage, readCommand, readInstruction } from './support/dockerfile.ts';

const [uid, gid] = readInstruction('USER').split(':').map(Number);

describe('the image', () => {
  let root = '';

  // What the image holds, with its own Node.js on PATH, all of it readable by everybody and writable by root only.
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'tollgate-image-'));
    chmodSync(root, 0o755);
    layOutImage(root);
    mkdirSync(join(root, '.bin'));
    copyFileSync(process.execPath, join(root, '.bin', 'node'));
    return () => rmSync(root, { recursive: true });
  });

  function environment(env: Readonly<Record<string, string>>) {
    const asUser = process.getuid?.() === 0 ? { uid, gid } : {};
    return { cwd: root, env: { PATH: join(root, '.bin'), NODE_ENV: 'production', ...env }, ...asUser } as const;
  }

  function checkHealth(opsPort: string) {
    const [program = '', ...args] = readCommand('HEALTHCHECK');
    return spawnSync(program, args, environment({ OPS_PORT: opsPort })).status;
  }

  test('starts without development dependencies, passes its health check, and drains on SIGTERM, as its own user', async () => {
    const [redis, backend] = await Promise.all([startRedis(), startBackend()]);
    onTestFinished(async () => void (await Promise.all([redis.stop(), backend.close()])));
    const [program = '', ...args] = [...readCommand('ENTRYPOINT'), ...readCommand('CMD')];
    const gateway = spawn(program, args, {
      ...environment({ REDIS_URL: redis.url, UPSTREAM_URL: backend.url, PORT: '0', OPS_PORT: '0', ADMIN_PORT: '0' }),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    onTestFinished(() => void gateway.kill('SIGKILL'));
    let stderr = '';
    gateway.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const exited = once(gateway, 'exit');
    const lines: Record<string, unknown>[] = [];
    for await (const line of createInterface({ input: gateway.stdout })) {
      lines.push(JSON.parse(line));
      if (lines.at(-1)?.msg === 'tollgate started') break;
    }
    const started = lines.at(-1);
    expect(stderr).toBe('');
    expect(started?.msg).toBe('tollgate started');
    gateway.stdout.resume();

    expect(checkHealth(new URL(String(started?.ops)).port)).toBe(0);
    expect((await fetch(`${started?.ops}/readyz`)).status).toBe(200);
    gateway.kill('SIGTERM');
    expect(await exited).toStrictEqual([0, null]);
  });

  test('fails its health check where nothing listens', () => {
    expect(checkHealth('1')).toBe(1);
  });
});
