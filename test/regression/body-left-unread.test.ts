/**
 * A backend that responds without reading the body of a request reads it as the beginning of the next one on the connection.
 * So a customer could have its own request line served to another customer. Reuse after a body can now be turned off.
 */
import { describe, expect, it, onTestFinished } from 'vitest';
import { ANY_ROUTE } from '../bodies/support.ts';
import { bearer, createCustomerWithKey } from '../support/admin.ts';
import { EMBEDDED_STORE, startTestGateway } from '../support/gateway.ts';
import { startRawUpstream } from '../upstream/support/upstreams.ts';

/** What another customer gets after an upload whose body begins a request of its own. */
async function readAfterUpload(upstream: Record<string, unknown>) {
  // It takes whatever follows a head for the next head.
  const backend = await startRawUpstream((socket, head) => {
    const [line = ''] = head.split('\r\n');
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${line.length}\r\n\r\n${line}`);
  });
  const store = await EMBEDDED_STORE.start();
  onTestFinished(() => store.close());
  const gateway = await startTestGateway({
    storeUrl: store.url,
    upstreamUrl: `http://127.0.0.1:${backend.port}`,
    config: { routes: [ANY_ROUTE] as never, upstream },
  });
  onTestFinished(() => gateway.close());
  const [mallory, alice] = [
    await createCustomerWithKey(gateway, { id: 'mallory', plan: 'starter' }),
    await createCustomerWithKey(gateway, { id: 'alice', plan: 'starter' }),
  ];
  const body = 'GET /api/of-mallory HTTP/1.1\r\nX-Rest: ';
  const upload = await fetch(`${gateway.public}/api/upload`, { method: 'POST', headers: bearer(mallory), body });
  expect(await upload.text()).toBe('POST /api/upload HTTP/1.1');
  const read = async (path: string) => (await fetch(gateway.public + path, { headers: bearer(alice) })).text();
  const first = await read('/api/of-alice');
  const second = await read('/api/again');
  return { first, second, connections: backend.connections() };
}

describe('after a body that the backend left unread, the next customer', () => {
  it('gets the response to its own request, with upstream.reuse_after_body: false', async () => {
    expect(await readAfterUpload({ reuse_after_body: false })).toEqual({
      first: 'GET /api/of-alice HTTP/1.1',
      second: 'GET /api/again HTTP/1.1',
      // Requests without a body share the second one.
      connections: 2,
    });
  });

  it('by default gets what the body asked for, as docs/upstreams.md says', async () => {
    expect((await readAfterUpload({})).first).toBe('GET /api/of-mallory HTTP/1.1');
  });
});
