/**
 * A backend of event streams: `event-backend.ts PORT`. Each GET gets an event every 100 ms until it is closed. Streams are
 * spread over the 100 ms, a hundredth of them each millisecond. An event says when it was sent, in µs of the clock that all
 * processes of the machine share.
 */
import { createServer, type ServerResponse } from 'node:http';

const INTERVAL_MS = 100;
/** About as much as one word of a language model takes. */
const TEXT = 'x'.repeat(64);

/** By the millisecond of the interval in which its next event is due. */
const slots = Array.from({ length: INTERVAL_MS }, () => new Set<ServerResponse>());
let opened = 0;
let sentUntilMs = Math.floor(performance.now());

createServer((_req, res) => {
  // nginx passes each event on at once.
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
  res.flushHeaders();
  const slot = slots[opened++ % INTERVAL_MS];
  slot?.add(res);
  res.once('close', () => slot?.delete(res));
}).listen(Number(process.argv[2]), '127.0.0.1');

setInterval(() => {
  for (const nowMs = performance.now(); sentUntilMs < nowMs; sentUntilMs += 1) {
    const sentMicros = process.hrtime.bigint() / 1000n;
    for (const res of slots[sentUntilMs % INTERVAL_MS] ?? [])
      res.write(`data: {"sent":${sentMicros},"text":"${TEXT}"}\n\n`);
  }
}, 1);
