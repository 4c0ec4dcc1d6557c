/** The gateway that is tried, a process of its own, and the backend behind it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { fieldValue, type ReadRequest } from '../http/support/http-reader.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../http/support/recording-upstream.ts';
import { createCustomerWithKey } from '../support/admin.ts';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { FUZZ_KEY } from './cases.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const START_MS = 60_000;
const METHODS = ['GET', 'POST', 'PUT'];

export interface Subject {
  readonly port: number;
  readonly upstream: RecordingUpstream;
  /** What the backend saw of the caller with this address since this was asked last. */
  seenFrom(address: string): ReadRequest[];
  /** Undefined while it runs; else how it ended and what it said. */
  ended(): string | undefined;
  /** Log lines that tell of a bug. */
  bugs(): number;
  close(): Promise<void>;
}

export async function startSubject(): Promise<Subject> {
  const byCaller = new Map<string, ReadRequest[]>();
  const upstream = await startRecordingUpstream((request) => {
    const caller = fieldValue(request, 'x-forwarded-for') ?? '';
    byCaller.set(caller, [...(byCaller.get(caller) ?? []), request]);
    return 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  });
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-fuzz-'));
  const file = join(folder, 'gateway.yaml');
  const anyPort = { host: '127.0.0.1', port: 0 };
  await writeFile(
    file,
    stringify({
      // A body may end exactly where all that is sent ends. Then nothing asks for the connection to be closed.
      listen: { ...anyPort, keep_alive_timeout_ms: 1000 },
      ops: anyPort,
      admin: { ...anyPort, token: ADMIN_TOKEN },
      store: { url: 'sqlite:store.sqlite' },
      upstream: { urls: [upstream.url] },
      // The server as another backend, with connections of its own.
      upstreams: { second: { urls: [upstream.url] } },
      routes: [
        { path: '/api/v1/conversations', methods: METHODS },
        { path: '/api/v1/conversations/{id}', methods: METHODS, upstream: 'second' },
      ],
      // A body that mutation has made longer than what is sent must not count as a hang.
      limits: { body_stall_timeout_ms: 200 },
      plans: { starter: { requests_per_hour: 1_000_000_000 } },
      auth: { failures_per_minute: 1_000_000_000 },
      shutdown: { not_ready_ms: 0, drain_ms: 0 },
      logging: { access: 'off' },
    }),
  );
  const child = spawn(process.execPath, [MAIN, 'start', '--config', file], {
    env: CHILD_ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  let bugs = 0;
  let ended: string | undefined;
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4000);
  });
  child.once('exit', (status, signal) => {
    ended = `the gateway ended with ${status ?? signal}: ${said}`;
  });
  const listening = new Promise<{ readonly public: string; readonly admin: string }>((resolve, reject) => {
    let line = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      line += text;
      for (let end = line.indexOf('\n'); end >= 0; end = line.indexOf('\n')) {
        const entry = line.slice(0, end);
        line = line.slice(end + 1);
        const record = JSON.parse(entry);
        if (record.msg === 'tollgate started') resolve(record);
        if (record.msg === 'internal error') bugs++;
      }
    });
    child.once('exit', () => reject(new Error(ended)));
    setTimeout(() => reject(new Error(`the gateway does not start: ${said}`)), START_MS).unref();
  });
  const urls = await listening;
  await createCustomerWithKey(urls, { id: 'fuzz', plan: 'starter' }, FUZZ_KEY);
  return {
    port: Number(new URL(urls.public).port),
    upstream,
    seenFrom(address) {
      const seen = byCaller.get(address) ?? [];
      byCaller.delete(address);
      return seen;
    },
    ended: () => ended,
    bugs: () => bugs,
    async close() {
      if (ended === undefined) {
        const exited = once(child, 'exit');
        child.kill('SIGKILL');
        await exited;
      }
      upstream.close();
      await rm(folder, { recursive: true });
    },
  };
}
