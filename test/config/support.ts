import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../src/config/config.ts';
import type { Environment } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problems.ts';

/** The least that a configuration must say, on lines 1 and 2. */
export const MINIMAL = 'store: { url: "redis://127.0.0.1:6379" }\nupstream: { urls: ["http://backend:3000"] }\n';

export function load(yaml: string, env: Environment = {}): Promise<Config> {
  return parseConfig('gateway.yaml', Buffer.from(yaml), env);
}

/** What is wrong with it; fails when nothing is. */
export async function problemsOf(yaml: string | Uint8Array, env: Environment = {}): Promise<readonly string[]> {
  try {
    await parseConfig('gateway.yaml', Buffer.from(yaml), env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error('the configuration was accepted');
}

/** Runs `body` with a new folder that has these files, and removes it afterwards. */
export async function withFolder(
  files: Readonly<Record<string, string>>,
  body: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-config-'));
  try {
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
    await body(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}
