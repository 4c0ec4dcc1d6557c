/** The command line as its users run it: a process of its own that speaks to a gateway over HTTP. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { vi } from 'vitest';
import type { CustomerDocument, ProblemDocument } from '../../src/api/admin/responses.ts';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { closeAtEnd } from '../support/cleanup.ts';
import { ADMIN_TOKEN, type TestGateway } from '../support/gateway.ts';
import type { Finished } from '../support/process.ts';

export const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export interface RunSettings {
  readonly env?: Readonly<Record<string, string>>;
  /** On standard input, which is closed after it. */
  readonly input?: string;
}

/** Runs any program to its end. */
export async function run(program: string, args: readonly string[], settings: RunSettings = {}): Promise<Finished> {
  const child = spawn(program, args, { env: { ...CHILD_ENVIRONMENT, ...settings.env } });
  closeAtEnd(() => void child.kill('SIGKILL'));
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => {}).end(settings.input ?? '');
  const [status]: (number | null)[] = await once(child, 'close');
  return { status: status ?? undefined, stdout, stderr };
}

export type Tollgate = (args: readonly string[], settings?: RunSettings) => Promise<Finished>;

/** The program with the gateway's address and its admin token. */
export function tollgateFor(gateway: Pick<TestGateway, 'admin'>): Tollgate {
  return (args, { env, ...rest } = {}) =>
    run(process.execPath, [MAIN, ...args, '--admin-url', String(gateway.admin)], {
      env: { TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN, ...env },
      ...rest,
    });
}

/** The same in this process, without a standard input: it costs milliseconds. */
export function tollgateHereFor(
  gateway: Pick<TestGateway, 'admin'>,
  token = ADMIN_TOKEN,
): (...args: readonly string[]) => Promise<Finished> {
  return async (...args) => {
    vi.stubEnv('TOLLGATE_ADMIN_TOKEN', token);
    try {
      return await tollgateHere(...args, '--admin-url', String(gateway.admin));
    } finally {
      vi.unstubAllEnvs();
    }
  };
}

/** Runs a command that needs no gateway in this process. */
export async function tollgateHere(...args: readonly string[]): Promise<Finished> {
  const [stdout, stderr] = [capture(process.stdout), capture(process.stderr)];
  try {
    const status = await runCommandLine(args);
    return { status, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    stdout.restore();
    stderr.restore();
  }
}

/** As {@link tollgateHere}, with this text on standard input. */
export async function tollgateHereReading(input: string, ...args: readonly string[]): Promise<Finished> {
  const stdin = vi.spyOn(process, 'stdin', 'get').mockReturnValue(Readable.from([input]) as typeof process.stdin);
  try {
    return await tollgateHere(...args);
  } finally {
    stdin.mockRestore();
  }
}

function capture(stream: NodeJS.WriteStream) {
  let text = '';
  const write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    text += chunk;
    const done = rest.at(-1);
    if (typeof done === 'function') done();
    return true;
  };
  const spy = vi.spyOn(stream, 'write').mockImplementation(write);
  return { text: () => text, restore: () => spy.mockRestore() };
}

/** The same words for a shell. */
export function shellWords(gateway: Pick<TestGateway, 'admin'>, args: readonly string[]): string {
  const words = [process.execPath, MAIN, ...args, '--admin-url', String(gateway.admin)];
  return words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
}

/** A file that is gone after the test. */
export async function temporaryFile(name: string, content: string | Uint8Array): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-cli-'));
  closeAtEnd(() => rm(folder, { recursive: true }));
  const file = join(folder, name);
  await writeFile(file, content);
  return file;
}

/** A real server in the place of the admin API, for answers that a gateway gives rarely or never. */
export async function startServer(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closeAtEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A customer as the admin API shows it, for a server that stands in for a gateway. */
export const CUSTOMER_DOCUMENT: CustomerDocument = {
  id: 'acme',
  name: null,
  plan: 'starter',
  current_plan: 'starter',
  requests_per_hour: null,
  period_requests: null,
  period_anchor: null,
  temporary_limit: null,
  suspended: false,
  suspended_until: null,
  usage_reset_at: null,
  period_reset_at: null,
  notify_url: null,
  limit: 1,
  limit_source: 'plan',
  limit_problem: null,
  limit_until: null,
  limit_then: null,
  period: null,
};

export function problemDocument(
  members: Pick<ProblemDocument, 'status' | 'title' | 'detail' | 'code'>,
): ProblemDocument {
  return { ...members, type: 'about:blank', instance: 'urn:uuid:r1', request_id: 'r1' };
}
