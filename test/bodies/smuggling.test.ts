import { describe, expect, it } from 'vitest';
import { fieldValues } from '../http/support/http-reader.ts';
import { useHttpSystem } from '../http/support/system.ts';
import { SERVERS } from './backends.ts';
import { CASES, HIDDEN } from './smuggling-cases.ts';
import { ANY_ROUTE, startBodySystem } from './support.ts';

const config = { routes: [ANY_ROUTE] as never, limits: { body_stall_timeout_ms: 200 } };

/** Requests with safe methods may overtake each other. */
function byTarget(a: { readonly target: string }, b: { readonly target: string }): number {
  return a.target.localeCompare(b.target);
}

/** The methods of {@link ANY_ROUTE} shared out between two backends. */
const TWO_BACKENDS = {
  ...config,
  routes: [
    { ...ANY_ROUTE, methods: ['GET', 'PUT', 'DELETE'] },
    { ...ANY_ROUTE, methods: ['POST', 'PATCH', 'OPTIONS'], upstream: 'second' },
  ] as never,
};

describe.each([['the gateway alone', undefined], ['two backends', undefined], ...Object.entries(SERVERS)])(
  'with %s',
  (name, between) => {
    const isMissing = name in SERVERS && between === undefined;
    describe.skipIf(isMissing)('the backend gets exactly the bytes of each body, and no request from within', () => {
      const hasSecond = name === 'two backends';
      const system = useHttpSystem({
        config: hasSecond ? TWO_BACKENDS : config,
        hasSecond,
        ...(between && { between }),
      });

      it.each(CASES)('$name', async ({ bytes, seen, statuses }) => {
        const fill = (text: string) => text.replaceAll('KEY', system.key);
        const { length } = fill(HIDDEN);
        const filled = bytes.replace('LENGTH', String(length)).replace('HEX', length.toString(16));
        const tried = await system.attempt(filled, { answers: statuses.length });
        expect(tried.fault).toBeUndefined();
        expect(tried.rest).toBe('');
        expect(
          tried.seen.map(({ method, target, content }) => ({ method, target, content })).toSorted(byTarget),
        ).toEqual(seen.map((request) => ({ ...request, content: fill(request.content) })).toSorted(byTarget));
        expect(tried.answers.map(({ status }) => status).filter((status) => status !== 100)).toEqual(statuses);
        if ((statuses.at(-1) ?? 0) >= 400) expect(tried.end).toBe('closed');
        for (const request of tried.seen) {
          expect(fieldValues(request, 'x-tollgate-customer')).toEqual(['acme']);
          expect(request.fields.filter(([each]) => /^(expect|trailer|te|authorization)$/i.test(each))).toEqual([]);
        }
      });
    });
  },
);

it('after an early response, the rest of the upload is a request neither to the gateway nor to the backend', async () => {
  const { open, backend, headers } = await startBodySystem({ answer: (req, res) => res.end(`got ${req.url}`) });
  const hidden = `GET /api/hidden HTTP/1.1\r\nHost: a\r\nAuthorization: ${headers.Authorization}\r\n\r\n`;
  const client = open('POST /api/early', `Content-Length: ${30_000 + hidden.length}`);
  client.send('a'.repeat(30_000));
  await client.until(/got \/api\/early/);
  client.send(hidden + hidden);
  const received = await client.untilEnd();
  expect(received.match(/^HTTP\/1\.1 .*$/gm)).toEqual(['HTTP/1.1 200 OK']);
  expect(received).toMatch(/\r\nConnection: close\r\n/);
  await open('GET /api/next').until(/got \/api\/next/);
  expect(backend.seen.map(({ url }) => url)).toEqual(['/api/early', '/api/next']);
});
