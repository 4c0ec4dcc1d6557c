/** Reads an OpenAPI description from a file or a URL, within bounds of size and time. */
import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { extname } from 'node:path';
import { printable } from '../../api/client/printable.ts';
import { runInThread, ThreadBoundError } from '../../base/bounded-thread.ts';
import { systemReason, UnreadableFileError } from '../../config/problems.ts';
import { FaultyFileError, UsageError } from '../exit-status.ts';
import type { OpenApiJob, OpenApiResult } from './openapi-thread.ts';

const MAX_MEBIBYTES = 16;
const DOWNLOAD_TIMEOUT_MS = 10_000;
/** With the start of the program, a hostile file ends within 5 s where the CPU is free. */
const BOUNDS = { cpuMs: 3500, heapMebibytes: 1024 };
/** `.ts` in a checkout, where Node.js strips the types; `.js` in the built package. */
const ENTRY = new URL(`./openapi-thread${extname(import.meta.filename)}`, import.meta.url);

/** Returns the routes of a description, and warnings. Rejects with FaultyFileError if it describes none. */
export async function readOpenApi(source: string, base: string | undefined) {
  const url = URL.parse(source);
  if (url?.username || url?.password) throw new UsageError('the URL must not contain a user or a password');
  let result: OpenApiResult;
  try {
    const isUrl = url?.protocol === 'http:' || url?.protocol === 'https:';
    const content = await collect(isUrl ? await download(source) : createReadStream(source));
    if (!isUtf8(content)) throw new UnreadableFileError('it is not UTF-8 text');
    const job: OpenApiJob = { source, text: new TextDecoder().decode(content), base };
    result = (await runInThread(ENTRY, job, BOUNDS)) as OpenApiResult;
  } catch (error) {
    throw new FaultyFileError([printable(`${source}: ${reasonOf(error)}`)]);
  }
  if ('fault' in result) throw new FaultyFileError([printable(result.fault)]);
  return result;
}

function reasonOf(error: unknown): string {
  if (error instanceof ThreadBoundError) return `${error.message}, or give it as JSON, which is faster to parse`;
  const { name, cause = error } = error as Error;
  const seconds = DOWNLOAD_TIMEOUT_MS / 1000;
  return `cannot be read: ${name === 'TimeoutError' ? `no complete response within ${seconds} s` : systemReason(cause)}`;
}

/** Redirects are not followed: they could lead to a server that is not meant. */
async function download(url: string): Promise<AsyncIterable<Uint8Array>> {
  const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS) });
  if (response.ok && response.body) return response.body;
  const target = response.headers.get('location');
  await response.body?.cancel();
  throw new UnreadableFileError(`the server answers ${response.status}${target ? ` and redirects to ${target}` : ''}`);
}

async function collect(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > MAX_MEBIBYTES * 1024 * 1024) throw new UnreadableFileError(`it is larger than ${MAX_MEBIBYTES} MiB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
