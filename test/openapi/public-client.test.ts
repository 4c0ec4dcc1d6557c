/** docs/openapi/public.yaml is what API customers generate clients from: it lints clean, and the client is useful. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createConfig, lint } from '@redocly/openapi-core';
import { expect, it, onTestFinished } from 'vitest';

const FILE = fileURLToPath(new URL('../../docs/openapi/public.yaml', import.meta.url));
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Code that an API customer would write; the line that misuses a type says so. */
const CALLER = `
import { type Conversation, defaults, getConversation, getUsage, listConversations } from './client.ts';

defaults.headers = { Authorization: 'Bearer tg_demo_starter' };
const page = await listConversations({ limit: 20, cursor: 'abc' });
if (page.status === 200) {
  const first: Conversation | undefined = page.data.data[0];
  const phone: string | undefined = first?.contact.phone;
  const next: string | null | undefined = page.data.next_cursor;
  console.log(phone, next);
}
const one = await getConversation('conv_1');
if (one.status === 200) console.log(one.data.createdAt.length, one.data.messages.length);
if (one.status === 429) console.log(one.data.code, one.data.detail);
const usage = await getUsage();
if (usage.status === 200) console.log(usage.data.remaining - 1);
// @ts-expect-error: limit is a number
await listConversations({ limit: 'twenty' });
// @ts-expect-error: an id is a string
if (one.status === 200) console.log(one.data.id - 1);
`;

it('has no warning by the recommended rules of the OpenAPI linter', async () => {
  const config = await createConfig({ extends: ['recommended'] });
  const faults = await lint({ ref: FILE, config });
  expect(faults.map(({ message, ruleId }) => `${ruleId}: ${message}`)).toEqual([]);
});

it('generates a TypeScript client that types conversations, pages, refusals and the quota', () => {
  // Inside the checkout, so that the generated code finds its runtime.
  const folder = mkdtempSync(`${ROOT}node_modules/.generated-client-`);
  onTestFinished(() => rmSync(folder, { recursive: true }));
  execFileSync(process.execPath, [`${ROOT}node_modules/oazapfts/dist/cli.js`, FILE, `${folder}/client.ts`]);
  writeFileSync(`${folder}/caller.ts`, CALLER);
  const compiler = `${ROOT}node_modules/typescript/bin/tsc`;
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext', '--skipLibCheck'];
  const files = ['--allowImportingTsExtensions', '--ignoreConfig', `${folder}/caller.ts`];
  const { stdout } = spawnSync(process.execPath, [compiler, ...options, ...files], { encoding: 'utf8' });
  expect(stdout).toBe('');
});
