import { request } from 'node:http';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { ConnectionError, createConnect } from '../../../src/upstream/http1/connect.ts';
import { ConnectionPool } from '../../../src/upstream/http1/connection-pool.ts';
import { InvalidResponseError } from '../../../src/upstream/http1/response-parser.ts';
import { linesOf } from './header-lines.ts';
import { NotingSink, type Reading } from './response-reading.ts';

/** Sends one request and tells what was made of the answer, or of that there was none. */
export type Asker = (isHead: boolean) => Promise<Reading>;

/** Asks by the transport under test, on real connections. */
export function ourAsker(port: number): Asker {
  const pool = new ConnectionPool({
    connect: createConnect(new URL(`http://127.0.0.1:${port}`), 5_000),
    maxConnections: 1,
    maxConnectionsPerCustomer: 1,
    maxWaitingPerCustomer: () => 0,
    maxHeaderBytes: 16_384,
    clock: systemClock,
  });
  onTestFinished(() => pool.close());
  return (isHead) =>
    new Promise((resolve, reject) => {
      const sink = new NotingSink();
      pool.take({
        customer: 'acme',
        isKeyless: false,
        isRepeatable: true,
        previous: undefined,
        next: undefined,
        queue: undefined,
        share: undefined,
        onConnection(connection) {
          const head = `${isHead ? 'HEAD' : 'GET'} / HTTP/1.1\r\nHost: upstream.test\r\n\r\n`;
          connection.send(head, isHead, {
            onSend: () => true,
            onHead(...told) {
              sink.onHead(...told);
              if (sink.hasEnded) resolve(sink.reading('whole'));
            },
            onContent(...told) {
              sink.onContent(...told);
              if (sink.hasEnded) resolve(sink.reading('whole'));
            },
            onPause() {},
            onError(error) {
              if (sink.hasEnded) reject(new Error('told of an error after the end', { cause: error }));
              else if (error instanceof InvalidResponseError) resolve(sink.reading('refused'));
              else if (error instanceof ConnectionError) resolve(sink.reading('unfinished'));
              else reject(error);
            },
          });
          return true;
        },
        onError: reject,
      });
    });
}

/** Asks by Node.js's own client, whose parser is llhttp. What it does not accept is `refused`. */
export function nodeAsker(port: number): Asker {
  return (isHead) =>
    new Promise((resolve) => {
      const sink = new NotingSink();
      let isWhole = false;
      const req = request({ host: '127.0.0.1', port, method: isHead ? 'HEAD' : 'GET', agent: false });
      req.once('response', (res) => {
        sink.onHead(res.statusCode ?? 0, res.statusMessage ?? '', linesOf(res.rawHeaders), undefined, false);
        res.on('data', (bytes: Buffer) => sink.onContent(bytes, 0, bytes.length, false));
        res.on('error', () => {});
        res.once('end', () => {
          isWhole = res.complete;
        });
      });
      req.once('upgrade', (_res, socket) => socket.destroy());
      // Bytes after the answer are an error of the request too, but none of the answer.
      req.on('error', () => {});
      req.once('close', () => resolve(sink.reading(isWhole ? 'whole' : 'refused')));
      req.end();
    });
}
