/** The code of docs/for-api-customers.md does what the page says: it is run as it stands there. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startBackend } from '../support/backend.ts';

const PAGE = readFileSync(new URL('../../docs/for-api-customers.md', import.meta.url), 'utf8');
const HAS_PYTHON = spawnSync('python3', ['--version']).status === 0;

interface Run {
  readonly status: number | null;
  readonly output: string;
  readonly errors: string;
}

async function run(language: string, command: string, extension: string, baseUrl: string): Promise<Run> {
  const code = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(PAGE)?.[1];
  if (code === undefined) throw new Error(`the page has no ${language}`);
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-example-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, `example.${extension}`);
  writeFileSync(file, code);
  const child = spawn(command, [file], { env: { ...process.env, BASE_URL: baseUrl, API_KEY: 'a-key-of-mine' } });
  let [output, errors] = ['', ''];
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (errors += chunk));
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { status, output, errors };
}

/** Two pages, the second one behind a refusal. */
async function startPagedBackend(refusal: { status: number; retryAfter: string }) {
  let refused = false;
  const backend = await startBackend((req, res) => {
    const isSecond = req.url?.includes('cursor=next%2B1') === true;
    if (isSecond && !refused) {
      refused = true;
      res.writeHead(refusal.status, { 'Retry-After': refusal.retryAfter }).end('{"code":"quota_exceeded"}');
      return;
    }
    const id = isSecond ? 'conv_2' : 'conv_1';
    res.end(JSON.stringify({ data: [{ id, status: 'OPEN' }], next_cursor: isSecond ? null : 'next+1' }));
  });
  onTestFinished(() => backend.close());
  return backend;
}

describe.each([
  ['js', process.execPath, 'mjs', true],
  ['python', 'python3', 'py', HAS_PYTHON],
] as const)('the example in %s', (language, command, extension, isInstalled) => {
  it.runIf(isInstalled)('reads every page with the key, and retries after Retry-After', async () => {
    const backend = await startPagedBackend({ status: 503, retryAfter: '1' });
    const { status, output, errors } = await run(language, command, extension, backend.url);
    expect(errors).toBe('');
    expect(status).toBe(0);
    expect(output).toBe('conv_1 OPEN\nconv_2 OPEN\n');
    expect(backend.seen).toHaveLength(3);
    for (const { headers } of backend.seen) expect(headers.authorization).toBe('Bearer a-key-of-mine');
  });

  it.runIf(isInstalled)('gives up at once where the wait is too long', async () => {
    const backend = await startPagedBackend({ status: 429, retryAfter: '3300' });
    const { status, errors } = await run(language, command, extension, backend.url);
    expect(status).toBe(1);
    expect(errors).toContain('429: {"code":"quota_exceeded"}');
    expect(backend.seen).toHaveLength(2);
  });
});
