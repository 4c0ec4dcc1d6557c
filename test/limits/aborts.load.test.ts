/** Callers that leave at every moment of a request. `ABORTS=100000` for the full number. */
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { KEY, startGatewayProcess } from '../support/gateway-process.ts';
import { openSession } from './support.ts';

const COUNT = Number(process.env.ABORTS ?? 3000);
const AT_ONCE = 50;
/** Below the number of callers at once, so that some are refused. */
const MAX_CONCURRENT = 40;
/** For a machine that is busy. */
const PATIENT = { timeout: 20_000 };
const MOST_GROWTH_BYTES = 48 * 1024 * 1024;
const REQUEST = `GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${KEY}\r\n\r\n`;

/** Asks, and leaves after `afterMs`; in the middle of sending where `part` is below 1. */
function leave(url: string, afterMs: number, part: number): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {}).resume();
    socket.once('close', () => resolve());
    socket.once('connect', () => {
      socket.write(REQUEST.slice(0, Math.ceil(REQUEST.length * part)));
      setTimeout(() => (afterMs % 2 === 0 ? socket.destroy() : socket.resetAndDestroy()), afterMs);
    });
  });
}

async function leaveOften(url: string, count: number): Promise<void> {
  let left = count;
  const leaver = async () => {
    for (let i = left--; i > 0; i = left--) await leave(url, i % 8, i % 5 === 0 ? 0.7 : 1);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, leaver));
}

it(`clients that disconnect at any moment leak no resources (${COUNT})`, async () => {
  let number = 0;
  let open = 0;
  let holdsAll = false;
  const gateway = await startGatewayProcess({
    config: { plans: { unlimited: { requests_per_hour: 1_000_000_000, max_concurrent: MAX_CONCURRENT } } },
    answer(_req, res) {
      open++;
      res.once('close', () => open--);
      if (holdsAll) return;
      // Some answer at once, some begin and stop, some never answer.
      if (++number % 3 === 0) res.end('{}');
      else if (number % 3 === 1) res.write('the beginning');
    },
  });
  const files = () => gateway.metric('process_open_fds');
  const memory = () => gateway.metric('process_resident_memory_bytes');
  const settle = async () => {
    await expect.poll(() => gateway.metric('tollgate_inflight_requests'), PATIENT).toBe(0);
    await expect.poll(() => gateway.metric('tollgate_connections'), PATIENT).toBe(0);
    // What the backend still works on is the gateway's doing.
    await expect.poll(() => open, PATIENT).toBe(0);
  };
  await leaveOften(gateway.public, Math.max(1000, COUNT / 5));
  await settle();
  const [heldFiles, heldBytes] = [await files(), await memory()];
  await leaveOften(gateway.public, COUNT);
  // On a busy machine more of them leave before their request has come to the backend.
  while (gateway.backend.seen.length < COUNT / 2) await leaveOften(gateway.public, COUNT / 5);
  await settle();
  // Kept connections to the backend may have come, as many as requests there were at once.
  expect(await files()).toBeLessThanOrEqual(heldFiles + AT_ONCE);
  expect((await memory()) - heldBytes, 'bytes of resident memory').toBeLessThan(MOST_GROWTH_BYTES);

  // Had one of them kept its place, not as many as max_concurrent would fit now.
  holdsAll = true;
  const holders = await Promise.all(Array.from({ length: MAX_CONCURRENT }, () => openSession(gateway.public)));
  for (const holder of holders) holder.send(REQUEST);
  await expect.poll(() => open, PATIENT).toBe(MAX_CONCURRENT);
  const oneMore = await fetch(`${gateway.public}/v1/conversations`, { headers: { Authorization: `Bearer ${KEY}` } });
  expect(await oneMore.json()).toMatchObject({ status: 429, code: 'too_many_concurrent' });
}, 600_000);
