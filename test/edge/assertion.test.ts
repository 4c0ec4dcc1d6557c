import { describe, expect, it } from 'vitest';
import { goodKey, startEdge } from './support.ts';

const ASSERTION = 'x-tollgate-assertion';
const known = { 'good-key': goodKey('key_1') };

/** Says what it was asked, at once or later, as a signer that remembers some of its signatures. */
const signer = (later: boolean) => ({
  of: (customer: string, plan: string, keyId: string) => {
    const assertion = `signed.${customer}.${plan}.${keyId}`;
    return later ? new Promise<string>((resolve) => setImmediate(resolve, assertion)) : assertion;
  },
});

describe('the assertion of the customer', () => {
  it.each([
    ['that is at hand', false],
    ['that has to be made', true],
  ])('%s reaches the backend instead of a value from the client', async (_, later) => {
    const edge = await startEdge({ known, settings: { assertions: signer(later) } });
    const answer = await edge.send('good-key', { 'X-Tollgate-Assertion': 'spoofed', X_Tollgate_Assertion: 'spoofed' });
    expect(answer.status).toBe(200);
    expect(edge.backend.seen.map(({ headers }) => headers[ASSERTION])).toEqual(['signed.acme.starter.key_1']);
    expect(edge.backend.seen[0]?.headers).not.toHaveProperty('x_tollgate_assertion');
    expect(answer.headers.has(ASSERTION)).toBe(false);
  });

  it('goes to the backend without the other identity headers too', async () => {
    const edge = await startEdge({ known, settings: { assertions: signer(false), identityHeaders: false } });
    await edge.send('good-key');
    expect(edge.backend.seen[0]?.headers).toHaveProperty(ASSERTION);
    expect(edge.backend.seen[0]?.headers).not.toHaveProperty('x-tollgate-customer');
  });

  it('is not sent where none is configured', async () => {
    const edge = await startEdge({ known });
    expect((await edge.send('good-key', { 'X-Tollgate-Assertion': 'spoofed' })).status).toBe(200);
    expect(edge.backend.seen.map((request) => request.headers)).toEqual([
      expect.not.objectContaining({ [ASSERTION]: expect.anything() }),
    ]);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no key');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no key'))],
  ])('is never left out: when the signer %s, nothing is sent and nothing is counted', async (_, of) => {
    const edge = await startEdge({ known, settings: { assertions: { of } } });
    const answer = await edge.send('good-key');
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ code: 'internal_error' });
    expect(edge.backend.seen).toEqual([]);
    expect(edge.unitsTaken()).toBe(0);
  });
});
