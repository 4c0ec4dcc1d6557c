import { expect, test } from 'vitest';
import type { PublicAppParts } from '../../src/edge/public-app.ts';
import { goodKey, startEdge } from '../edge/support.ts';

const known = { 'good-key': goodKey('key_1') };
const fail = (): never => {
  throw new Error('a bug of the tests');
};
const reject = async (): Promise<never> => fail();

/** A part of which this one method has a bug. */
function broken(methods: Record<string, unknown>): never {
  return methods as never;
}

const authenticator = (authenticate: unknown) => broken({ authenticate, size: fail, follow: fail, close: () => {} });
const quota = (decide: unknown) => broken({ planNameOf: () => 'starter', decide });

test.each<[string, Partial<PublicAppParts>]>([
  ['the authenticator throws', { authenticator: authenticator(fail) }],
  ['the authenticator rejects', { authenticator: authenticator(reject) }],
  ['noting the use of a key throws', { keyUses: { note: fail } }],
  ['the quota throws', { quota: quota(fail) }],
  ['the quota rejects', { quota: quota(reject) }],
  ['the forwarder throws', { forwarder: broken({ forward: fail }) }],
])('when %s, each request gets 500 internal_error, and later requests are served normally', async (_, parts) => {
  const edge = await startEdge({ known, parts });
  for (let i = 0; i < 3; i += 1) {
    const answer = await edge.send('good-key');
    expect(answer.status).toBe(500);
    const text = await answer.text();
    expect(JSON.parse(text)).toMatchObject({ code: 'internal_error' });
    expect(text).not.toContain('a bug of the tests');
    expect((await edge.send('malformed key')).status).toBe(400);
  }
  expect(edge.backend.seen).toEqual([]);
});
