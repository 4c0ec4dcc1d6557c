import { connect } from 'node:net';
import { type ReadAnswer, readAnswers } from './http-reader.ts';

/** How long the caller waits altogether: a fault of the server is not that it is slow. */
const PATIENCE_MS = 30_000;

/** What came of bytes that were sent over one connection. */
export interface Conversation {
  readonly answers: readonly ReadAnswer[];
  /**
   * `kept`: the connection was open until the caller ended it; `closed`, `reset`: the server ended it; `open`: the server
   * left the caller without an answer until it gave up.
   */
  readonly end: 'kept' | 'closed' | 'reset' | 'open';
  /** What came after the last whole answer. */
  readonly rest: string;
  /** What came is no sequence of answers. */
  readonly fault: Error | undefined;
}

export interface ConversationSettings {
  /** How many answers are waited for before the caller ends the connection. */
  readonly answers?: number;
  /** Whether the request with this number is a HEAD; left out: the first one if the bytes begin with `HEAD`. */
  readonly isHead?: (index: number) => boolean;
}

/**
 * Sends `bytes` (each piece in a packet of its own, as Latin-1) and reads all that comes back. The caller ends the
 * connection when it has the answers, and then takes whatever else comes: an answer too many is seen.
 */
export function converse(
  port: number,
  bytes: string | readonly string[],
  settings: ConversationSettings = {},
): Promise<Conversation> {
  const pieces = typeof bytes === 'string' ? [bytes] : bytes;
  const isHead = settings.isHead ?? ((index) => index === 0 && (pieces[0]?.startsWith('HEAD') ?? false));
  const { answers: wanted = 1 } = settings;
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    let received = '';
    let hasAll = false;
    const giveUp = setTimeout(() => finish('open'), PATIENCE_MS);
    const finish = (end: Conversation['end']): void => {
      clearTimeout(giveUp);
      socket.destroy();
      try {
        resolve({ ...readAnswers(received, isHead, end !== 'open'), end, fault: undefined });
      } catch (error) {
        resolve({ answers: [], rest: received, end, fault: error as Error });
      }
    };
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      received += text;
      if (hasAll) return;
      try {
        const { answers } = readAnswers(received, isHead, false);
        hasAll = answers.filter(({ status }) => status >= 200).length >= wanted;
        const mustClose = answers.some(({ fields }) =>
          fields.some(([name, value]) => name.toLowerCase() === 'connection' && value.toLowerCase() === 'close'),
        );
        if (hasAll && !mustClose) socket.end();
        else if (hasAll) hasAnnouncedClose = true;
      } catch {
        // What was sent is still to arrive, so that it counts for this conversation.
        socket.end();
      }
    });
    let hasAnnouncedClose = false;
    socket.on('end', () => finish(hasAll && !hasAnnouncedClose ? 'kept' : 'closed'));
    socket.on('error', () => finish('reset'));
    void (async () => {
      for (const piece of pieces) {
        if (socket.destroyed) return;
        await new Promise<void>((written) => socket.write(piece, 'latin1', () => written()));
        if (pieces.length > 1) await new Promise((turn) => setImmediate(turn));
      }
    })();
  });
}
