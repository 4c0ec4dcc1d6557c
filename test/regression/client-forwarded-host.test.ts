/**
 * A balancer such as AWS's Application Load Balancer sets X-Forwarded-For and -Proto but passes the client's own
 * X-Forwarded-Host through. The gateway believed it, because it came from a trusted proxy: whoever sent
 * `X-Forwarded-Host: attacker.example` chose the host from which the backend builds links and redirects. Where a proxy
 * appended its own value, the gateway took the first one, which is the client's as well.
 */
import { expect, it } from 'vitest';
import { exchangeRaw } from '../support/raw-http.ts';
import { startSystem } from '../support/system.ts';

const HOST = 'api.example';

async function forwarded(listen: Record<string, unknown>, ...lines: string[]) {
  const { gateway, backend, key } = await startSystem({
    config: { listen: { trusted_proxies: ['127.0.0.1'], ...listen } },
  });
  const head = ['GET /v1/conversations HTTP/1.1', `Host: ${HOST}`, `Authorization: Bearer ${key}`, ...lines];
  const { status } = await exchangeRaw(gateway.public, `${head.join('\r\n')}\r\n\r\n`);
  expect(status).toBe(200);
  const { headers } = backend.seen[0] ?? {};
  return { host: headers?.['x-forwarded-host'], proto: headers?.['x-forwarded-proto'] };
}

it("a client's X-Forwarded-Host that a trusted proxy passes through does not reach the backend", async () => {
  const { host } = await forwarded({}, 'X-Forwarded-Host: attacker.example');
  expect(host).toBe(HOST);
});

it('with listen.trust_forwarded_host the nearest value counts: the one that the trusted proxy appended', async () => {
  const listen = { trust_forwarded_host: true };
  expect(await forwarded(listen, 'X-Forwarded-Host: attacker.example, shop.example')).toMatchObject({
    host: 'shop.example',
  });
  const apart = ['X-Forwarded-Host: attacker.example', 'X-Forwarded-Host: shop.example'];
  expect(await forwarded(listen, ...apart)).toMatchObject({ host: 'shop.example' });
});

it('the nearest X-Forwarded-Proto counts', async () => {
  expect(await forwarded({}, 'X-Forwarded-Proto: https, http')).toMatchObject({ proto: 'http' });
});
