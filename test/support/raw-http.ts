import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case; the last value of a repeated field. */
  readonly headers: Record<string, string>;
  readonly body: string;
  /** Whether the server ended the connection. */
  readonly closed: boolean;
}

/** How long a server that announced to close may take to do so. */
const CLOSE_MS = 20_000;

/**
 * Sends bytes as they are and reads one answer: until it is complete by its framing, and where it says
 * `Connection: close`, until the server has closed as well.
 */
export function exchangeRaw(url: string, bytes: string): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let received = '';
    let closing: NodeJS.Timeout | undefined;
    const finish = (closed: boolean) => {
      clearTimeout(closing);
      socket.destroy();
      resolve(parseAnswer(received, closed));
    };
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      received += chunk;
      if (!isComplete(received)) return;
      if (parseAnswer(received, false).headers.connection === 'close')
        closing ??= setTimeout(() => finish(false), CLOSE_MS);
      else finish(false);
    });
    socket.on('end', () => finish(true));
    // A server that has answered may reset what is still being sent; without an answer it is a failure.
    socket.on('error', (error) => (received === '' ? reject(error) : finish(true)));
    socket.write(bytes, 'latin1');
  });
}

function parseAnswer(received: string, closed: boolean): RawAnswer {
  const [head = '', ...rest] = received.split('\r\n\r\n');
  const [statusLine = '', ...fields] = head.split('\r\n');
  const headers: Record<string, string> = {};
  for (const field of fields) {
    const colon = field.indexOf(':');
    headers[field.slice(0, colon).toLowerCase()] = field.slice(colon + 1).trim();
  }
  return { status: Number(statusLine.split(' ')[1]), headers, body: rest.join('\r\n\r\n'), closed };
}

function isComplete(received: string): boolean {
  const { headers, body } = parseAnswer(received, false);
  if (headers['transfer-encoding'] === 'chunked') return body.endsWith('0\r\n\r\n') || body === '0\r\n';
  return received.includes('\r\n\r\n') && body.length >= Number(headers['content-length'] ?? 0);
}
