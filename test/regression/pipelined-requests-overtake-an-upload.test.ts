/**
 * A request that was pipelined behind a POST reached the backend before it: the POST waited for its body or for the quota,
 * the other one did not. A client that creates a thing and reads it in one go got a 404. Only requests with safe methods may
 * be worked on at the same time (RFC 9112 §9.3.2).
 */
import { expect, it } from 'vitest';
import { startBodySystem } from '../bodies/support.ts';
import { eventually } from '../support/eventually.ts';

const UPLOAD = 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n';

it('a request begins when the response to the unsafe one before it is complete', async () => {
  const finish: (() => void)[] = [];
  const { open, backend, headers } = await startBodySystem({
    answer: (req, res) => {
      req.resume();
      finish.push(() => res.end(req.url));
    },
  });
  const request = (line: string, rest: string) =>
    `${line} HTTP/1.1\r\nHost: a\r\nAuthorization: ${headers.Authorization}\r\n${rest}`;
  const client = open('GET /api/1');
  client.send(request('GET /api/2', '\r\n') + request('POST /api/3', UPLOAD));
  client.send(request('GET /api/4', '\r\n') + request('GET /api/5', '\r\n') + request('DELETE /api/6', UPLOAD));
  const order: string[] = [];
  for (const [step, paths] of [['1', '2'], ['3'], ['4', '5'], ['6']].entries()) {
    await eventually(`step ${step} is worked on`, () => backend.seen.length === order.length + paths.length);
    order.push(...paths);
    for (const end of finish.splice(0)) end();
    await client.until(new RegExp(`/api/${paths.at(-1)}`));
  }
  expect(backend.seen.map(({ url }) => url?.at(-1)).toSorted()).toEqual(order);
});
