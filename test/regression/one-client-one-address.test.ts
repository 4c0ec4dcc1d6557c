/**
 * With `listen.host: "::"`, a client's refused requests were logged as `1.2.3.4`, and its refusals before the parser had a
 * request as `::ffff:1.2.3.4`: a search for either address missed the other lines.
 */
import { expect, test } from 'vitest';
import { exchangeRaw } from '../support/raw-http.ts';
import { startSystem } from '../support/system.ts';

test('an IPv4 client of a dual-stack listener has one address in all lines of the access log', async ({ skip }) => {
  const system = await startSystem({ config: { listen: { host: '::' } } }).catch((error: unknown) => {
    skip(/EAFNOSUPPORT|EADDRNOTAVAIL/.test(String(error)), 'this machine has no IPv6');
    throw error;
  });
  const url = `http://127.0.0.1:${new URL(system.gateway.public).port}`;
  await exchangeRaw(url, 'GET /v1/conversations HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await exchangeRaw(url, 'no request\r\n\r\n');
  await exchangeRaw(url, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
  const lines = () => system.gateway.logs.filter(({ code }) => code !== undefined);
  await expect.poll(lines).toHaveLength(3);
  expect(lines().map(({ client }) => client)).toEqual(Array(3).fill('127.0.0.1'));
});
