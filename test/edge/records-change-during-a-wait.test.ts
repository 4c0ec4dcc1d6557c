import { describe, expect, it } from 'vitest';
import type { Authentication } from '../../src/customers/keys/authenticator.ts';
import { goodKey, startEdge } from './support.ts';

const REVOKED: Authentication = { outcome: 'invalid', reason: 'revoked' };
const SUSPENDED = goodKey('key_1', { suspended: true });

/** What is known of the key, which may be changed while a request waits. */
function changeable(): Record<string, Authentication> {
  return { 'good-key': goodKey('key_1') };
}

describe.each([
  ['revoked', 401, (known: Record<string, Authentication>) => Object.assign(known, { 'good-key': REVOKED })],
  [
    'of a suspended customer',
    403,
    (known: Record<string, Authentication>) => Object.assign(known, { 'good-key': SUSPENDED }),
  ],
])('a request whose key is then %s is refused with %i and gets its unit back', (_, status, change) => {
  it('after waiting for the store', async () => {
    const known = changeable();
    const edge = await startEdge({ known, storeReply: async () => void change(known) });
    expect((await edge.send('good-key')).status).toBe(status);
    expect(edge.backend.seen).toEqual([]);
    expect(edge.unitsTaken()).toBe(0);
  });

  it('after waiting for a signature', async () => {
    const known = changeable();
    const of = async () => {
      change(known);
      return 'signed';
    };
    const edge = await startEdge({ known, settings: { assertions: { of } } });
    expect((await edge.send('good-key')).status).toBe(status);
    expect(edge.backend.seen).toEqual([]);
    expect(edge.unitsTaken()).toBe(0);
  });
});

it('a request is decided again by a limit that was set while the store decided, and takes one unit', async () => {
  const known = changeable();
  let replies = 0;
  const storeReply = async () => {
    replies += 1;
    if (replies === 1) known['good-key'] = goodKey('key_1', { requestsPerHour: 7 });
  };
  const edge = await startEdge({ known, storeReply });
  const response = await edge.send('good-key');
  expect([response.status, response.headers.get('x-ratelimit-limit')]).toEqual([200, '7']);
  expect(replies).toBe(2);
  expect(edge.unitsTaken()).toBe(1);
});
