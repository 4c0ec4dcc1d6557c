/** Sends one case, and says what is wrong with what came of it. */
import { connect } from 'node:net';
import { type ReadAnswer, type ReadRequest, readAnswers } from '../http/support/http-reader.ts';
import { type Case, FUZZ_KEY } from './cases.ts';
import type { Subject } from './subject.ts';

/**
 * Sent behind each case: it ends whatever is unfinished and closes the connection, so that a caller that is left waiting has
 * met a hang, and nobody waits for timeouts.
 */
const END = `\r\n\r\n${'GET /end HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'.repeat(2)}`;
const PATIENCE_MS = 15_000;

/** RFC 3986's pchar without `;`, or an encoded byte; built apart from the gateway's own pattern. */
const TARGET =
  /^\/api\/v1\/conversations(?:\/(?:[A-Za-z0-9._~!$&'()*+,=:@-]|%[0-9A-Fa-f]{2}){1,512})?(?:\?[\x21\x22\x24-\x7e]*)?$/;
const FORBIDDEN =
  /^(connection|keep[-_]alive|te|trailer|transfer_encoding|upgrade|content_length|expect|authorization|forwarded|proxy(?:[-_].*)?)$/i;
/** The reader of the backend has refused all but one of them. */
const FRAMING = /^(transfer-encoding|content-length)$/i;

/** What is wrong, in words; undefined when all is well. */
export async function findFault(subject: Subject, tried: Case, address: string): Promise<string | undefined> {
  const faultsBefore = subject.upstream.faults.length;
  const { received, hasEnded } = await converse(subject.port, tried, address);
  // Of a caller that has gone, requests may still be on their way: they are told from the next one's by their own address.
  const seen = tried.resets ? [] : subject.seenFrom(address);
  const ended = subject.ended();
  if (ended !== undefined) return `crash: ${ended}`;
  if (!hasEnded)
    return `hang: the connection is still open after ${PATIENCE_MS} ms; received ${JSON.stringify(received)}`;
  const fault = subject.upstream.faults[faultsBefore];
  if (fault !== undefined) return `the backend received what is no request: ${fault.message}`;
  const sent = tried.pieces.join('');
  const most = Math.min(countOf(sent, FUZZ_KEY), countOf(sent, 'HTTP/1.') + countOf(sent, 'RTSP/1.'));
  if (seen.length > most) return `the backend saw ${seen.length} requests for ${most} sent: ${JSON.stringify(seen)}`;
  for (const request of seen) {
    const wrong = findWrong(request) ?? findWrongContent(request, sent + END);
    if (wrong !== undefined) return `the backend saw ${wrong}: ${JSON.stringify(request)}`;
  }
  return tried.resets ? undefined : findBadAnswer(received);
}

function findWrong({ method, target, fields }: ReadRequest): string | undefined {
  if (!['GET', 'HEAD', 'POST', 'PUT'].includes(method)) return `method ${method}`;
  if (!TARGET.test(target)) return `target ${target}`;
  if (fields.filter(([name]) => name.toLowerCase() === 'host').length !== 1) return 'not one Host';
  const bad = fields.find(([name]) => FORBIDDEN.test(name));
  if (bad !== undefined) return `field ${bad[0]}`;
  const customers = fields.filter(([name]) => /^x[^a-z0-9]tollgate[^a-z0-9]customer$/i.test(name));
  return customers.length === 1 && customers[0]?.[1] === 'fuzz' ? undefined : 'another customer';
}

/** Content is what the caller sent in one piece, or in chunks: with other bytes between its own. */
function findWrongContent({ method, fields, content }: ReadRequest, sent: string): string | undefined {
  const framing = fields.find(([name]) => FRAMING.test(name))?.[0].toLowerCase();
  if (framing !== undefined && (method === 'GET' || method === 'HEAD')) return `content of ${method}`;
  if (framing === 'content-length') return sent.includes(content) ? undefined : 'content that was not sent';
  let at = -1;
  for (const byte of content) {
    at = sent.indexOf(byte, at + 1);
    if (at < 0) return 'chunks that were not sent';
  }
  return undefined;
}

function findBadAnswer(received: string): string | undefined {
  let answers: ReadAnswer[];
  let rest: string;
  try {
    // Which one answers a HEAD cannot be told from mutated bytes; it is the one that another answer follows at once.
    ({ answers, rest } = readAnswers(
      received,
      (_, following) => following === '' || following.startsWith('HTTP/'),
      true,
    ));
  } catch (error) {
    return `no sequence of answers (${(error as Error).message}): ${JSON.stringify(received)}`;
  }
  if (rest !== '') return `an unfinished answer: ${JSON.stringify(received)}`;
  const bug = answers.find(({ status }) => status === 500);
  return bug && `an answer of a bug: ${bug.content}`;
}

function countOf(text: string, part: string): number {
  return text.split(part).length - 1;
}

function converse(port: number, { pieces, resets }: Case, address: string) {
  return new Promise<{ received: string; hasEnded: boolean }>((resolve) => {
    const localAddress = resets ? address.replace('127.0.1.', '127.0.2.') : address;
    const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true, allowHalfOpen: true });
    let received = '';
    const finish = (hasEnded: boolean) => {
      clearTimeout(patience);
      socket.destroy();
      resolve({ received, hasEnded });
    };
    const patience = setTimeout(() => finish(false), PATIENCE_MS);
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
      if (!resets) return;
      socket.resetAndDestroy();
      finish(true);
    });
    socket.once('end', () => finish(true));
    socket.once('error', () => finish(true));
    const [first = '', ...rest] = [...pieces, END];
    socket.write(first, 'latin1');
    const next = () => {
      const piece = rest.shift();
      if (piece === undefined || socket.destroyed) return;
      socket.write(piece, 'latin1', () => setImmediate(next));
    };
    setImmediate(next);
  });
}
