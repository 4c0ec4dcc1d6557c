/**
 * A bug that was met after the head of a response had been sent left its request in flight for ever, without a metric or
 * an access line. After limits.in_flight of them, every request was refused with 503 `overloaded`.
 */
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import type { PublicAppParts } from '../../src/edge/public-app.ts';
import { goodKey, startEdge } from '../edge/support.ts';

type Forwarder = PublicAppParts['forwarder'];

const bug = () => new Error('a bug of the tests');

const bugs: [string, object, Forwarder['forward']][] = [
  [
    'after the head',
    { status: 200, problem: 'internal_error', isAborted: true },
    ({ res }) => {
      res.writeHead(200).write('some');
      throw bug();
    },
  ],
  [
    'twice after the head',
    { status: 200, problem: 'internal_error', isAborted: true },
    (request, _destination, { onBug }) => {
      request.res.writeHead(200).write('some');
      onBug(request, bug());
      throw bug();
    },
  ],
  [
    'before the head and again after it',
    { status: 500, problem: 'internal_error' },
    (request, _destination, { onBug }) => {
      onBug(request, bug());
      throw bug();
    },
  ],
];

test.each(bugs)(
  'a request that hits a bug %s is recorded once, and no longer counts as in flight',
  async (_, line, meetBug) => {
    let forward = meetBug;
    const forwarder = { forward: (...args: Parameters<typeof forward>) => forward(...args) };
    const edge = await startEdge({
      known: { 'good-key': goodKey('key_1') },
      parts: { forwarder: forwarder as Forwarder },
      settings: { maxInFlight: 1 },
    });
    for (let i = 0; i < 4; i++) {
      await expect(edge.send('good-key').then((response) => response.text())).rejects.toThrow();
    }
    expect(edge.accessRecords).toEqual(Array(4).fill(expect.objectContaining(line)));

    const held = Promise.withResolvers<ServerResponse>();
    forward = ({ res }) => held.resolve(res);
    const first = edge.send('good-key');
    const res = await held.promise;
    expect((await edge.send('good-key')).status).toBe(503);
    res.end('good');
    expect(await (await first).text()).toBe('good');
  },
);
