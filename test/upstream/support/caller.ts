import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface RawAnswer {
  readonly status: number;
  readonly statusLine: string;
  /** Flat, as received. */
  readonly headers: string[];
  readonly content: Buffer;
  /** How the connection ended. */
  readonly end: 'closed' | 'reset';
}

export function openCaller(port: number): Socket {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => {
    socket.destroy();
  });
  return socket;
}

export function headerValues(answer: RawAnswer, name: string): string[] {
  return answer.headers.filter((_, i, all) => i % 2 === 1 && all[i - 1]?.toLowerCase() === name);
}

/** Sends one request and reads the connection to its end: the bytes as they came, nothing decoded but the head. */
export async function call(port: number, path = '/', method = 'GET', version = '1.1'): Promise<RawAnswer> {
  const socket = openCaller(port);
  socket.write(`${method} ${path} HTTP/${version}\r\nHost: caller.test\r\nConnection: close\r\n\r\n`);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const end = await new Promise<RawAnswer['end']>((resolve) => {
    socket.once('error', () => resolve('reset'));
    socket.once('end', () => resolve('closed'));
  });
  return { ...parse(Buffer.concat(chunks)), end };
}

function parse(bytes: Buffer): Omit<RawAnswer, 'end'> {
  const headEnd = bytes.indexOf('\r\n\r\n');
  const [statusLine = '', ...fields] = bytes.subarray(0, Math.max(0, headEnd)).toString('latin1').split('\r\n');
  const headers = fields.flatMap((field) => {
    const colon = field.indexOf(':');
    return [field.slice(0, colon), field.slice(colon + 1).replace(/^ /, '')];
  });
  const content = headEnd < 0 ? Buffer.alloc(0) : bytes.subarray(headEnd + 4);
  return { status: Number(statusLine.split(' ')[1] ?? 0), statusLine, headers, content };
}

/** Resolves with everything that came once `isEnough` accepts it. */
export function readUntil(socket: Socket, isEnough: (text: string) => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    socket.on('data', function read(chunk: Buffer) {
      text += chunk.toString('latin1');
      if (!isEnough(text)) return;
      socket.off('data', read);
      resolve(text);
    });
    socket.once('error', reject);
    socket.once('end', () => reject(new Error(`the connection ended after: ${text}`)));
  });
}
