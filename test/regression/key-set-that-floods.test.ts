/**
 * An issuer of JWTs responds with its key set in chunks of a byte, or with interim responses without end. The content was
 * bounded, by 256 KiB, but each of its pieces was an object, and interim responses were read for all of five seconds.
 */
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { KeySetUnavailableError, RemoteKeySet } from '../../src/control/admin/remote-key-set.ts';
import { createLogger } from '../../src/observability/logger.ts';
import { flood, type Respond, startFloodingServer } from '../support/flooding-server.ts';

const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
/** More than the buffers of two sockets hold. */
const MAX_SENT_BYTES = 16 * 1024 * 1024;

async function loadFrom(respond: Respond) {
  const server = await startFloodingServer(respond);
  const logs: string[] = [];
  const keys = new RemoteKeySet({
    url: `${server.origin}/jwks.json`,
    clock: systemClock,
    scheduler: { after: () => ({ cancel() {} }) },
    logger: createLogger({ level: 'info', destination: { write: (line) => void logs.push(line) } }),
  });
  const verdict = await Promise.resolve(keys.keyFor({ alg: 'ES256' }, { payload: '', signature: '' })).catch(
    (error) => error,
  );
  keys.close();
  return { verdict, logs, sentBytes: await server.sentBytes() };
}

test.each([
  ['103 Early Hints', '', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'more than 10 interim responses'],
  ['empty lines', '', '\r\n', 'more than 262144 bytes'],
  ['chunks of a byte', CHUNKED, '1\r\n \r\n', 'more than 262144 bytes'],
  ['chunk extensions', CHUNKED, `1;${'a'.repeat(4_000)}\r\n \r\n`, ''],
  ['a body', 'HTTP/1.1 200 OK\r\n\r\n', ' ', 'more than 262144 bytes'],
  ['a key set, and then spaces', 'HTTP/1.1 200 OK\r\n\r\n{"keys":[]}', ' ', 'more than 262144 bytes'],
])('an issuer that sends %s without end is left at once', async (_, head, text, reason) => {
  const { verdict, logs, sentBytes } = await loadFrom(flood(head, text));
  expect(verdict).toBeInstanceOf(KeySetUnavailableError);
  expect(logs).toEqual([expect.stringContaining(reason)]);
  expect(sentBytes).toBeLessThan(MAX_SENT_BYTES);
});

test('a key set in chunks of a byte is read', async () => {
  const body = JSON.stringify({ keys: [] }).replace(/./gs, (byte) => `1\r\n${byte}\r\n`);
  const { verdict, logs } = await loadFrom((socket) => socket.end(`${CHUNKED}${body}0\r\n\r\n`));
  expect(verdict).toMatchObject({ code: 'ERR_JWKS_NO_MATCHING_KEY' });
  expect(logs).toEqual([]);
});
