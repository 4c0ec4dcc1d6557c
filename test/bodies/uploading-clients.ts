/** Common HTTP clients that upload a file. Each client frames, splits and announces a body differently. */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, openAsBlob } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { request } from 'undici';
import { afterAll, beforeAll, expect } from 'vitest';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { type GatewayProcess, KEY } from '../support/gateway-process.ts';
import { onPath } from '../support/programs.ts';
import { type Digest, sha256 } from './support.ts';

/** Above 1 MiB, curl sends Expect: 100-continue by itself. */
export const UPLOAD_BYTES = 2_500_000;
const CURL = onPath(['curl'], process.env);
const HAS_PYTHON = spawnSync('python3', ['--version']).status === 0;
const AUTHORIZATION = `Bearer ${KEY}`;

let folder: string;
let file: string;
let body: Buffer;

/** Writes the file that the clients upload before the tests of a file, and deletes its folder after them. */
export function prepareUpload(): void {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tollgate-clients-'));
    file = join(folder, 'upload');
    body = randomBytes(UPLOAD_BYTES);
    await writeFile(file, body);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
}

/** The folder of {@link prepareUpload}. */
export const uploadFolder = (): string => folder;

/** Runs a program to its end. @throws Error with its output if it fails. */
async function run(program: string, args: readonly string[], stdin: NodeJS.ReadableStream | undefined) {
  const child = spawn(program, args, { stdio: 'pipe', env: { ...CHILD_ENVIRONMENT, NO_PROXY: '*' } });
  if (stdin === undefined) child.stdin.end();
  else stdin.pipe(child.stdin);
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
  return { stdout, stderr };
}

/** Uploads the file and returns the response. Without 100 Continue, curl would wait longer than the test may take. */
async function curl(url: string, args: readonly string[], stdin?: NodeJS.ReadableStream): Promise<string> {
  const always = [
    '-q',
    '-sSv',
    '--fail-with-body',
    '--expect100-timeout',
    '600',
    '-H',
    `Authorization: ${AUTHORIZATION}`,
  ];
  const { stdout, stderr } = await run(CURL ?? '', [...always, ...args, url], stdin);
  expect(stderr).toMatch(/^> Expect: 100-continue.*^< HTTP\/1\.1 100 Continue/ms);
  return stdout;
}

/** Uses Requests if it is installed, else the standard library. */
const PYTHON = `
import http.client, sys, urllib.parse
method, url, path, way = sys.argv[1:]
headers = {"Authorization": "${AUTHORIZATION}"}
def pieces():
    with open(path, "rb") as file:
        while piece := file.read(77_777):
            yield piece
body = open(path, "rb").read() if way == "length" else pieces()
try:
    import requests
    session = requests.Session()
    session.trust_env = False
    response = session.request(method, url, data=body, headers=headers)
    response.raise_for_status()
    print(response.text)
except ImportError:
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request(method, parts.path, body, headers, encode_chunked=True)
    response = connection.getresponse()
    assert response.status < 300, response.status
    print(response.read().decode())
`;

async function python(method: string, url: string, way: 'length' | 'chunked'): Promise<string> {
  return (await run('python3', ['-c', PYTHON, method, url, file, way], undefined)).stdout;
}

type Method = 'POST' | 'PUT';

async function fetching(url: string, init: RequestInit): Promise<string> {
  const response = await fetch(url, { ...init, headers: { Authorization: AUTHORIZATION } });
  expect(response.status).toBeLessThan(300);
  return await response.text();
}

async function undici(url: string, method: Method, headers: Record<string, string> = {}): Promise<string> {
  const options = { method, headers: { Authorization: AUTHORIZATION, ...headers }, body: createReadStream(file) };
  const response = await request(url, options);
  expect(response.statusCode).toBeLessThan(300);
  return await response.body.text();
}

interface Client {
  readonly name: string;
  readonly method: Method;
  readonly isInstalled?: boolean;
  /** Uploads the file, and returns the content of a successful response. */
  upload(url: string): Promise<string>;
}

const HAS_CURL = CURL !== undefined;
const CLIENTS: readonly Client[] = [
  {
    name: 'curl --data-binary',
    method: 'POST',
    isInstalled: HAS_CURL,
    upload: (url) => curl(url, ['--data-binary', `@${file}`]),
  },
  {
    name: 'curl --upload-file',
    method: 'PUT',
    isInstalled: HAS_CURL,
    upload: (url) => curl(url, ['--upload-file', file]),
  },
  {
    name: 'curl --upload-file from standard input',
    method: 'PUT',
    isInstalled: HAS_CURL,
    upload: (url) => curl(url, ['--upload-file', '-'], createReadStream(file)),
  },
  {
    name: 'fetch with a file',
    method: 'POST',
    upload: async (url) => fetching(url, { method: 'POST', body: await openAsBlob(file) }),
  },
  {
    name: 'fetch with a stream',
    method: 'PUT',
    upload: async (url) =>
      fetching(url, { method: 'PUT', body: (await openAsBlob(file)).stream(), duplex: 'half' } as RequestInit),
  },
  { name: 'undici with a stream', method: 'POST', upload: (url) => undici(url, 'POST') },
  {
    name: 'undici with a stream and its length',
    method: 'PUT',
    upload: (url) => undici(url, 'PUT', { 'Content-Length': String(UPLOAD_BYTES) }),
  },
  {
    name: 'Python with bytes',
    method: 'POST',
    isInstalled: HAS_PYTHON,
    upload: (url) => python('POST', url, 'length'),
  },
  {
    name: 'Python with a generator',
    method: 'PUT',
    isInstalled: HAS_PYTHON,
    upload: (url) => python('PUT', url, 'chunked'),
  },
];

/** Lets all clients upload at once, and returns the checksum that the backend has of each body. */
export async function uploadAll(gateway: GatewayProcess, received: (name: string, response: string) => string) {
  const clients = CLIENTS.filter(({ isInstalled }) => isInstalled !== false);
  const uploads = clients.map(async ({ name, method, upload }, i) => {
    const response = await upload(`${gateway.public}/uploads/${method}/${i}`);
    return [name, received(`${method}/${i}`, response)];
  });
  const expected = Object.fromEntries(clients.map(({ name }) => [name, sha256(body)]));
  return { checksums: Object.fromEntries(await Promise.all(uploads)), expected };
}

/** Routes of the gateway for the uploads. */
export const ROUTES = [{ path: '/uploads/{method}/{name}', methods: ['POST', 'PUT'], max_body_bytes: UPLOAD_BYTES }];

/** Returns the checksum in the response of a backend that digests bodies. */
export const fromDigest = (_name: string, response: string): string => (JSON.parse(response) as Digest).sha256;
