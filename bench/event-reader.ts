/**
 * A program that reads event streams of event-backend.ts: `event-reader.ts URL KEY STREAMS DURATION_MS`. Prints a line of
 * JSON once all streams are open, and another after the duration. Ends when its standard input does.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { DelayHistogram } from './delay-histogram.ts';

const SENT = /"sent":(\d+)/g;

const [url = '', key, streams, durationMs] = process.argv.slice(2);
const { hostname, host, pathname, port } = new URL(url);
const request = `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\n\r\n`;
const delays = new DelayHistogram();
const buffer = Buffer.allocUnsafe(64 * 1024);
let closed = 0;

await Promise.all(Array.from({ length: Number(streams) }, open));
console.log('{}');
delays.clear();
setTimeout(() => {
  console.log(JSON.stringify({ events: delays.count, closed, ...delays.percentiles() }));
}, Number(durationMs));
process.stdin.resume().once('close', () => process.exit());

/** Resolves with the first event. */
async function open(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const callback = (length: number) => {
    const text = buffer.toString('latin1', 0, length);
    if (text.startsWith('HTTP/1.1') && !text.startsWith('HTTP/1.1 200 ')) reject(new Error(text));
    const nowMicros = Number(process.hrtime.bigint() / 1000n);
    for (const [, sent] of text.matchAll(SENT)) {
      delays.add(nowMicros - Number(sent));
      resolve();
    }
    return true;
  };
  const socket = connect({ port: Number(port), host: hostname, noDelay: true, onread: { buffer, callback } });
  socket.once('close', () => (closed += 1)).on('error', reject);
  await once(socket, 'connect');
  socket.write(request);
  await promise;
}
