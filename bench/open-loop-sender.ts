/**
 * A program that sends requests by its own clock, whatever the responses do: `open-loop-sender.ts URL KEY CONNECTIONS
 * REQUESTS_PER_SECOND DURATION_MS WARM_UP_MS`. Requests become due at random (a Poisson process). The latency of each
 * counts from when it was due, also if no connection was free then. So a stall counts for each request that was due in
 * it. Requests that are not complete at the end count with their latency so far.
 *
 * Prints a line of JSON like wrk.lua. Latencies are exact to about 0.1 ms: the program sleeps that long between two looks
 * at its sockets, to leave the CPU to the backend.
 */

import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { DelayHistogram } from './delay-histogram.ts';

const SLEEP_MS = 0.1;

interface Connection {
  readonly socket: Socket;
  /** When its request was due, by performance.now(). */
  dueMs: number;
  /** The bytes of its response so far. */
  received: number;
  /** Of the whole response; undefined until its headers have arrived. */
  expected: number | undefined;
  head: string;
}

const [url = '', key, connections, perSecond, durationMs, warmUpMs] = process.argv.slice(2);
const { hostname, host, pathname, port } = new URL(url);
const request = `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\n\r\n`;
const delays = new DelayHistogram();
const result = { requests: 0, bytes: 0, micros: 0, refused: 0, connect: 0, read: 0, write: 0, timeout: 0 };
const sleep = new Int32Array(new SharedArrayBuffer(4));
/** Requests that are due, oldest first; those before `sent` have a connection. */
const due: number[] = [];
let sent = 0;
let nextDueMs = 0;
let countedFromMs = 0;
let endMs = 0;

const all = await Promise.all(Array.from({ length: Number(connections) }, open));
const idle = [...all];
const startMs = performance.now();
nextDueMs = startMs + untilNext();
countedFromMs = startMs + Number(warmUpMs);
endMs = countedFromMs + Number(durationMs);
turn();

async function open(): Promise<Connection> {
  const buffer = Buffer.allocUnsafe(64 * 1024);
  const callback = (bytes: number) => {
    read(connection, buffer, bytes);
    return true;
  };
  const socket = connect({ port: Number(port), host: hostname, noDelay: true, onread: { buffer, callback } });
  const connection: Connection = { socket, dueMs: 0, received: 0, expected: undefined, head: '' };
  await once(socket, 'connect');
  socket.on('error', () => undefined);
  socket.on('close', () => {
    result.read++;
  });
  return connection;
}

function untilNext(): number {
  return (-Math.log(1 - Math.random()) * 1000) / Number(perSecond);
}

/** Sends what is due, sleeps, and lets Node.js read the sockets. */
function turn(): void {
  const nowMs = performance.now();
  for (; nextDueMs <= Math.min(nowMs, endMs); nextDueMs += untilNext()) due.push(nextDueMs);
  send();
  if (nowMs >= endMs) {
    end(nowMs);
    return;
  }
  Atomics.wait(sleep, 0, 0, Math.min(SLEEP_MS, nextDueMs - nowMs));
  setImmediate(turn);
}

function send(): void {
  for (; sent < due.length; sent++) {
    const connection = idle.pop();
    if (connection === undefined) return;
    Object.assign(connection, { dueMs: due[sent], received: 0, expected: undefined, head: '' });
    connection.socket.write(request, 'latin1');
  }
}

function read(connection: Connection, buffer: Buffer, bytes: number): void {
  connection.received += bytes;
  result.bytes += bytes;
  if (connection.expected === undefined) {
    connection.head += buffer.toString('latin1', 0, bytes);
    const headLength = connection.head.indexOf('\r\n\r\n') + 4;
    if (headLength < 4) return;
    const [, contentLength] = /\r\ncontent-length: *(\d+)\r\n/i.exec(connection.head) ?? [];
    // A response of unknown length never ends, so that the run fails.
    connection.expected = headLength + Number(contentLength ?? Number.NaN);
    if (Number(connection.head.slice(9, 12)) >= 400) result.refused++;
  }
  if (connection.received !== connection.expected) return;
  result.requests++;
  count(connection.dueMs, performance.now());
  idle.push(connection);
  send();
}

function count(dueMs: number, atMs: number): void {
  if (dueMs >= countedFromMs) delays.add(1000 * (atMs - dueMs));
}

function end(nowMs: number): void {
  for (const dueMs of due.slice(sent)) count(dueMs, nowMs);
  const unused = new Set(idle);
  for (const connection of all) if (!unused.has(connection)) count(connection.dueMs, nowMs);
  result.micros = Math.round(1000 * (nowMs - startMs));
  writeSync(1, `${JSON.stringify({ ...result, ...delays.percentiles() })}\n`);
  // Not process.exit(): once, Node.js waited in it for ever, for a thread of V8.
  process.kill(process.pid, 'SIGKILL');
}
