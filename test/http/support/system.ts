import { afterAll, beforeAll, expect } from 'vitest';
import { PROBLEMS, type ProblemCode } from '../../../src/http/problems/table.ts';
import { createCustomerWithKey } from '../../support/admin.ts';
import { EMBEDDED_STORE, startTestGateway, type TestGateway, type TestStore } from '../../support/gateway.ts';
import { type Conversation, type ConversationSettings, converse } from './caller.ts';
import { fieldValue, fieldValues, type ReadAnswer, type ReadRequest } from './http-reader.ts';
import { type RecordingUpstream, startRecordingUpstream, type UpstreamAnswer } from './recording-upstream.ts';
import { countTried } from './tally.ts';

const CUSTOMER = 'acme';
/** An admission is valid for about a second. */
const ADMISSION_MS = 900;

/** What came of one case: the caller's side and what the backend saw of it. */
interface Attempt extends Conversation {
  readonly seen: readonly ReadRequest[];
}

export interface HttpSystem {
  readonly gateway: TestGateway;
  readonly upstream: RecordingUpstream;
  /** A valid key. */
  readonly key: string;
  /** Of the gateway. */
  readonly port: number;
  /** Sends bytes in which `KEY` stands for the valid key. */
  attempt(bytes: string | readonly string[], settings?: ConversationSettings): Promise<Attempt>;
  /** The backend is to see so many requests that were not sent by these methods. */
  sentOtherwise(requests: number): void;
  /** Sends bytes that must be refused: the caller gets that, or a closed connection, and the backend sees nothing. */
  expectRefused(bytes: string | readonly string[], ...codes: ProblemCode[]): Promise<ReadAnswer | undefined>;
  /** Sends one request that must pass: the backend sees it as exactly one canonical request. */
  expectPassed(bytes: string | readonly string[], target?: string): Promise<{ answer: ReadAnswer; seen: ReadRequest }>;
}

export interface HttpSystemSettings {
  readonly answer?: (request: ReadRequest) => UpstreamAnswer;
  readonly config?: Record<string, Record<string, unknown>>;
  /** Whether routes may name the backend `second`: the same server, with connections of its own. */
  readonly hasSecond?: boolean;
  /** Starts a server between the gateway and the backend. */
  readonly between?: (backendUrl: string) => Promise<{ readonly url: string; close(): Promise<void> }>;
}

/** One gateway for all tests of a file, before a backend that records bytes. */
export function useHttpSystem({ answer, config = {}, hasSecond, between }: HttpSystemSettings = {}): HttpSystem {
  let server: Awaited<ReturnType<NonNullable<typeof between>>> | undefined;
  let store: TestStore;
  let upstream: RecordingUpstream;
  let gateway: TestGateway;
  let key: string;
  let port: number;
  let tried = 0;
  /** How many requests the backend was meant to see. */
  let accounted = 0;

  beforeAll(async () => {
    store = await EMBEDDED_STORE.start();
    upstream = await startRecordingUpstream(answer);
    server = await between?.(upstream.url);
    const upstreamUrl = server?.url ?? upstream.url;
    const second = hasSecond && { upstreams: { second: { urls: [upstreamUrl] } } };
    gateway = await startTestGateway({
      storeUrl: store.url,
      upstreamUrl,
      config: { logging: { access: 'off' }, ...second, ...config },
    });
    port = Number(new URL(gateway.public).port);
    key = await createCustomerWithKey(gateway, { id: CUSTOMER, plan: 'enterprise', requests_per_hour: 1_000_000 });
  });

  afterAll(async () => {
    countTried(tried);
    await gateway.close();
    await server?.close();
    upstream.close();
    await store.close();
    expect(upstream.faults, 'bytes that are no request reached the backend').toEqual([]);
    expect(upstream.seen.length, 'a request reached the backend after its case was over').toBe(accounted);
    expect(gateway.logs.filter(({ msg }) => msg === 'internal error')).toEqual([]);
  });

  async function attempt(bytes: string | readonly string[], settings?: ConversationSettings): Promise<Attempt> {
    const startedMs = performance.now();
    const first = await attemptOnce(bytes, settings);
    const isUnsent = first.seen.length === 0 && first.answers.some(({ status }) => status === 503);
    // Where the machine stands still for longer than an admission is valid, the request is not sent.
    return isUnsent && performance.now() - startedMs > ADMISSION_MS ? await attemptOnce(bytes, settings) : first;
  }

  async function attemptOnce(bytes: string | readonly string[], settings?: ConversationSettings): Promise<Attempt> {
    tried++;
    const before = upstream.seen.length;
    const filled =
      typeof bytes === 'string' ? bytes.replaceAll('KEY', key) : bytes.map((piece) => piece.replaceAll('KEY', key));
    const conversation = await converse(port, filled, settings);
    const seen = upstream.seen.slice(before);
    accounted += seen.length;
    return { ...conversation, seen };
  }

  return {
    get gateway() {
      return gateway;
    },
    get upstream() {
      return upstream;
    },
    get key() {
      return key;
    },
    get port() {
      return port;
    },
    attempt,
    sentOtherwise(requests) {
      accounted += requests;
    },
    async expectRefused(bytes, ...codes) {
      const tried = await attempt(bytes);
      const what = show(bytes);
      expect(tried.fault, what).toBeUndefined();
      expect(tried.end, what).not.toBe('open');
      expect(
        tried.seen.map(({ method, target }) => `${method} ${target}`),
        what,
      ).toEqual([]);
      expect(tried.answers.length, what).toBeLessThanOrEqual(1);
      const [answer] = tried.answers;
      if (answer === undefined) return undefined;
      const isHead = what.startsWith('HEAD');
      // Of bytes that are no request nobody knows that it was to be a HEAD; the connection ends with the answer.
      const content = isHead ? tried.rest : answer.content;
      if (isHead && content !== '')
        expect([content.length, tried.end], what).toEqual([Number(fieldValue(answer, 'content-length')), 'closed']);
      else expect(tried.rest, what).toBe('');
      expectProblem(answer, codes, what, isHead);
      if (CLOSING.has(problemCode(answer, codes)) || fieldValue(answer, 'connection') === 'close') {
        expect([fieldValue(answer, 'connection'), tried.end], what).toEqual(['close', 'closed']);
      }
      return answer;
    },
    async expectPassed(bytes, target) {
      const { answers, seen, end, rest, fault } = await attempt(bytes);
      const what = show(bytes);
      expect(fault, what).toBeUndefined();
      expect([answers.map(({ status }) => status), rest], what).toEqual([[200], '']);
      expect(end, what).not.toBe('open');
      expect(seen.length, what).toBe(1);
      const [answer] = answers;
      const [request] = seen;
      if (answer === undefined || request === undefined) throw new Error('unreachable: counted above');
      expectCanonical(request, upstream, what);
      if (target !== undefined) expect(request.target, what).toBe(target);
      return { answer, seen: request };
    },
  };
}

/** Codes of requests whose framing is not to be trusted: the connection ends with them. */
const CLOSING: ReadonlySet<ProblemCode> = new Set([
  'bad_request',
  'body_not_allowed',
  'target_too_long',
  'headers_too_large',
  'request_timeout',
  'expectation_failed',
  'not_implemented',
]);

function show(bytes: string | readonly string[]): string {
  const text = typeof bytes === 'string' ? bytes : bytes.join('');
  return text.length > 600 ? `${text.slice(0, 600)}…` : text;
}

function problemCode(answer: ReadAnswer, codes: readonly ProblemCode[]): ProblemCode {
  const code = codes.find((each) => PROBLEMS[each].status === answer.status);
  return answer.content === '' ? (code ?? 'internal_error') : JSON.parse(answer.content).code;
}

function expectProblem(answer: ReadAnswer, codes: readonly ProblemCode[], what: string, isHead: boolean): void {
  expect(fieldValues(answer, 'content-type'), what).toEqual(['application/problem+json']);
  expect(fieldValues(answer, 'cache-control'), what).toEqual(['no-store']);
  expect(fieldValues(answer, 'date').length, what).toBe(1);
  expect(fieldValues(answer, 'server'), what).toEqual([]);
  expect(fieldValues(answer, 'x-powered-by'), what).toEqual([]);
  if (isHead) {
    expect(
      codes.map((code) => PROBLEMS[code].status),
      what,
    ).toContain(answer.status);
    return;
  }
  const problem = JSON.parse(answer.content);
  expect(codes, `${what}\n${answer.content}`).toContain(problem.code);
  const { status } = PROBLEMS[problem.code as ProblemCode];
  expect([answer.status, problem.status], what).toEqual([status, status]);
  expect(problem.request_id, what).toBe(fieldValue(answer, 'x-request-id'));
  if (status === 401) expect(fieldValue(answer, 'www-authenticate'), what).toMatch(/^Bearer realm="api"/);
  if (status === 405) expect(fieldValue(answer, 'allow'), what).toBe('GET, HEAD');
}

/** RFC 3986's pchar without `;`, or any encoded byte. */
const TARGET =
  /^\/api\/v1\/conversations(?:\/(?:[A-Za-z0-9._~!$&'()*+,=:@-]|%[0-9A-Fa-f]{2}){1,512})?(?:\?[\x21\x22\x24-\x7e]*)?$/;
/** Exactly these once, with these values. */
const OWN = [
  ['x-tollgate-customer', /^acme$/],
  ['x-tollgate-plan', /^enterprise$/],
  ['x-tollgate-key-id', /^[\w-]+$/],
  ['x-request-id', /^[A-Za-z0-9][A-Za-z0-9._:=@+/-]{0,127}$/],
  ['x-forwarded-for', /^127\.0\.0\.1$/],
  ['x-forwarded-proto', /^http$/],
] as const;
const FORBIDDEN =
  /^(connection|keep.alive|proxy.*|te|trailer|transfer.encoding|upgrade|content.length|expect|authorization|http2.settings|forwarded|x.real.ip|x.original.url|x.rewrite.url|x.http.method.*|x.method.override)$/i;

/** The form that every request at the backend has, whatever the caller sent. */
export function expectCanonical(request: ReadRequest, upstream: RecordingUpstream, what: string): void {
  expect(['GET', 'HEAD'], what).toContain(request.method);
  expect(request.target, what).toMatch(TARGET);
  expect(request.target.split('?')[0]?.split('/'), what).not.toContain('..');
  expect(request.fields[0], what).toEqual(['Host', new URL(upstream.url).host]);
  expect(fieldValues(request, 'host').length, what).toBe(1);
  expect(
    request.fields.map(([name]) => name).filter((name) => FORBIDDEN.test(name)),
    what,
  ).toEqual([]);
  for (const [name, value] of OWN) {
    const alike = request.fields.filter(([each]) => each.toLowerCase().replace(/[^a-z0-9]/g, '-') === name);
    expect(alike.length, `${name} in ${what}`).toBe(1);
    expect(alike[0]?.[1], what).toMatch(value);
  }
  const ours = request.fields
    .filter(([name]) => /^x.(tollgate|forwarded)([^a-z0-9]|$)/i.test(name))
    .map(([name]) => name.toLowerCase());
  const known = [...OWN.map(([name]) => name as string), 'x-forwarded-host'];
  expect(
    ours.filter((name) => !known.includes(name)),
    what,
  ).toEqual([]);
  expect(request.fields.at(-1)?.[0], what).toBe('Via');
  expect(request.fields.at(-1)?.[1], what).toMatch(/^1\.[01] tollgate$/);
}

/** A request with the valid key for an allowed path, and more fields. */
export function get(path = '/v1/conversations', ...fields: readonly string[]): string {
  return head(`GET ${path} HTTP/1.1`, 'Host: api.example', 'Authorization: Bearer KEY', ...fields);
}

export function head(...lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`;
}
