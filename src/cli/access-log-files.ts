/** Reads the gateway's access log (JSON lines) from files, and yields the requests that asked for quota. */
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { parseTimestamp } from '../base/timestamp.ts';
import { systemReason } from '../config/problems.ts';

/** Requests of one customer that asked for quota: sent to the upstream, or refused because the quota was used up. */
export interface LoggedRequests {
  readonly customer: string;
  /** Undefined for summed refusals. */
  readonly plan: string | undefined;
  /** Unix ms, by the clock of the gateway. */
  readonly arrivedMs: number;
  /** When the line was written. */
  readonly loggedMs: number;
  /** More than one only for refusals that the gateway summed up in one line. */
  readonly count: number;
  readonly wasRefused: boolean;
}

/** What was seen in all files. */
export class LogSummary {
  /** Lines of finished requests, whether they asked for quota or not. */
  requestLines = 0;
  /** Lines of requests that the gateway neither refused nor answered with 500 or above. */
  successLines = 0;
  damagedLines = 0;
  /** Location of the first damaged line, as `file:line`. */
  firstDamaged: string | undefined;
  /** Requests that the quota refused, and that the gateway summed up over all customers: there were too many. */
  unattributedRefusals = 0;
  /** Times of the first and the last request; Unix ms. */
  fromMs = Number.POSITIVE_INFINITY;
  toMs = Number.NEGATIVE_INFINITY;
}

/** Longer lines cannot be the gateway's. They are read in pieces, so that a file without line breaks needs no memory. */
const MAX_LINE_LENGTH = 65_536;
/** A day. */
const MAX_DURATION_MS = 86_400_000;
/** Most requests that are sorted by arrival at once. Lines are logged when requests end, so they are not in that order. */
const SORTED_REQUESTS = 16_384;
const CHUNK_BYTES = 65_536;

/**
 * Yields requests in the order of their arrival, as far as the log has them within {@link SORTED_REQUESTS}. Rejects with
 * Error if a file cannot be read.
 */
export async function* readInOrderOfArrival(
  files: readonly string[],
  summary: LogSummary,
): AsyncGenerator<readonly LoggedRequests[]> {
  let waiting: LoggedRequests[] = [];
  for await (const batch of mergeFiles(files.map((file) => readFile(file, summary)))) {
    for (const requests of batch) waiting.push(requests);
    if (waiting.length < 2 * SORTED_REQUESTS) continue;
    waiting.sort(byArrival);
    yield waiting.slice(0, SORTED_REQUESTS);
    waiting = waiting.slice(SORTED_REQUESTS);
  }
  yield waiting.sort(byArrival);
}

/** Within a millisecond the log does not tell the order. Requests that were admitted then come first. */
function byArrival(a: LoggedRequests, b: LoggedRequests): number {
  return a.arrivedMs - b.arrivedMs || Number(a.wasRefused) - Number(b.wasRefused);
}

/** Merges files by the time of their lines. A single file is passed on as it is. */
async function* mergeFiles(
  files: readonly AsyncGenerator<LoggedRequests[]>[],
): AsyncGenerator<readonly LoggedRequests[]> {
  const heads: { readonly rest: AsyncGenerator<LoggedRequests[]>; batch: LoggedRequests[]; at: number }[] = [];
  for (const rest of files) {
    const { value, done } = await rest.next();
    if (!done) heads.push({ rest, batch: value, at: 0 });
  }
  while (heads.length > 0) {
    // The file whose batch ends first: whatever the others have until then can be merged with it.
    const first = heads.reduce((a, b) => (lastLoggedMs(b.batch) < lastLoggedMs(a.batch) ? b : a));
    const untilMs = lastLoggedMs(first.batch);
    const merged = [];
    for (const head of heads) {
      const { batch } = head;
      let requests = batch[head.at];
      while (requests !== undefined && (head === first || requests.loggedMs <= untilMs)) {
        merged.push(requests);
        requests = batch[++head.at];
      }
    }
    yield merged;
    for (const head of heads.filter(({ batch, at }) => at === batch.length)) {
      const { value, done } = await head.rest.next();
      if (done) heads.splice(heads.indexOf(head), 1);
      else Object.assign(head, { batch: value, at: 0 });
    }
  }
}

function lastLoggedMs(batch: readonly LoggedRequests[]): number {
  return batch.at(-1)?.loggedMs ?? 0;
}

/** Yields batches that are not empty, in the order of the file. `-`: standard input. */
async function* readFile(file: string, summary: LogSummary): AsyncGenerator<LoggedRequests[]> {
  let lineNumber = 0;
  try {
    for await (const lines of linesOf(open(file))) {
      const batch: LoggedRequests[] = [];
      for (const line of lines) {
        lineNumber++;
        const requests = readLine(line, summary);
        if (requests === 'damaged') {
          summary.damagedLines++;
          summary.firstDamaged ??= `${file}:${lineNumber}`;
        } else if (requests !== undefined) batch.push(requests);
      }
      if (batch.length > 0) yield batch;
    }
  } catch (error) {
    throw new Error(`${file}: cannot be read: ${systemReason(error)}`);
  }
}

function open(file: string): AsyncIterable<string> {
  const raw = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: CHUNK_BYTES });
  // The callback is required; an error also ends the iteration.
  return file.endsWith('.gz') ? pipeline(raw, createGunzip(), () => {}).setEncoding('utf8') : raw.setEncoding('utf8');
}

async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<string[]> {
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + chunk).split('\n');
    // A line that is too long becomes damaged pieces.
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_LENGTH) {
      lines.push(rest);
      rest = '';
    }
    yield lines;
  }
  if (rest !== '') yield [rest];
}

/** Returns undefined for a line that is not about requests which asked for quota. */
function readLine(line: string, summary: LogSummary): LoggedRequests | 'damaged' | undefined {
  if (line === '' || line === '\r') return undefined;
  let members: Readonly<Record<string, unknown>>;
  try {
    members = JSON.parse(line);
  } catch {
    return 'damaged';
  }
  if (typeof members !== 'object' || members === null) return 'damaged';
  const { msg } = members;
  // The gateway's other log lines.
  if (msg !== 'request' && msg !== 'further refusals') return undefined;

  const loggedMs = parseTimestamp(String(members.time));
  const { customer, plan, code, duration_ms: durationMs = 0, requests: count = 1 } = members;
  if (loggedMs === undefined || typeof durationMs !== 'number') return 'damaged';
  if (durationMs < 0 || durationMs > MAX_DURATION_MS) return 'damaged';
  if (!Number.isSafeInteger(count) || (count as number) < 1) return 'damaged';
  const arrivedMs = loggedMs - durationMs;
  if (msg === 'request') summary.requestLines++;
  if (code === undefined && Number(members.status) < 500) summary.successLines++;
  summary.fromMs = Math.min(summary.fromMs, arrivedMs);
  summary.toMs = Math.max(summary.toMs, loggedMs);

  // `upstream_ms` is present if the request was sent to the upstream, whatever came of it.
  const wasRefused = code === 'quota_exceeded';
  if (members.upstream_ms === undefined && !wasRefused) return undefined;
  if (customer === undefined && msg === 'further refusals') {
    summary.unattributedRefusals += count as number;
    return undefined;
  }
  if (typeof customer !== 'string' || (plan !== undefined && typeof plan !== 'string')) return 'damaged';
  return { customer, plan, arrivedMs, loggedMs, count: count as number, wasRefused };
}
