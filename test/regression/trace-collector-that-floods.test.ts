/**
 * A trace collector responds with an endless stream of `103 Early Hints`, of chunks of a byte, or of a byte now and then.
 * OpenTelemetry's exporter bounds only the content, by 4 MiB, and keeps each piece as an object: one response took 804 MB,
 * and interim responses occupied the event loop without end.
 */
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Tracing } from '../../src/observability/tracing/tracing.ts';
import { drip, flood, type Respond, startFloodingServer } from '../support/flooding-server.ts';

/** More than the buffers of two sockets hold. */
const MAX_SENT_BYTES = 16 * 1024 * 1024;
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

/** Exports a span, and resolves when it is lost and the connection is closed. */
async function exportTo(respond: Respond) {
  const server = await startFloodingServer(respond);
  const reasons: string[] = [];
  const tracing = new Tracing({
    version: '1.2.3',
    instanceId: 'i',
    spansDropped() {},
    logger: { warn: ({ reason }: { reason: string }) => void reasons.push(reason) } as never,
    clock: systemClock,
    random: Math.random,
  });
  const endpoint = `${server.origin}/v1/traces`;
  await tracing.apply({ endpoint, exportHeaders: {}, sampleRatio: 1, trustParent: false, customer: false });
  const req = { headers: {}, method: 'GET', httpVersion: '1.1', rawHeaders: [], socket: {} } as never;
  const traced = tracing.sample({ req, method: 'GET', client: { proto: 'http' }, route: 'none' }, { has: () => false });
  const names = { requestId: 'r', method: 'GET', route: 'none', plan: 'none', source: 'gateway' } as const;
  traced?.end({ ...names, status: 200, clientAddress: '', traceId: '' }, undefined);
  const sentBytes = await server.sentBytes();
  return { reasons, sentBytes, close: () => tracing.close(0) };
}

test.each([
  ['103 Early Hints', '', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'],
  ['empty lines', '', '\r\n'],
  ['chunks of a byte', CHUNKED, '1\r\nx\r\n'],
  ['chunk extensions', CHUNKED, `1;${'a'.repeat(4_000)}\r\nx\r\n`],
  ['trailers', `${CHUNKED}0\r\n`, 'x: y\r\n'],
  ['a body with status 400', 'HTTP/1.1 400 Bad Request\r\n\r\n', 'x'],
  ['bytes after its response', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}', 'x'],
])('a collector that sends %s without end is left at once', async (_, head, text) => {
  const { sentBytes, close } = await exportTo(flood(head, text));
  expect(sentBytes).toBeLessThan(MAX_SENT_BYTES);
  await close();
});

test.each([
  ['103 Early Hints', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
  ['an empty line', '\r\n'],
])('a collector that sends %s now and then is left after ten seconds', async (_, text) => {
  const { reasons, close } = await exportTo(drip(text));
  await close();
  expect(reasons).toEqual([expect.any(String)]);
});

test('a collector that switches protocols loses the spans', async () => {
  const { reasons, close } = await exportTo((socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
  );
  await expect.poll(() => reasons).toEqual([expect.stringContaining('switched protocols')]);
  await close();
});
