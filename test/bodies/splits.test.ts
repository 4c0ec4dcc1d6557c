import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { createConnect } from '../../src/upstream/http1/connect.ts';
import { headerLine, requestHead, UpstreamConnection } from '../../src/upstream/http1/upstream-connection.ts';
import { fieldValue } from '../http/support/http-reader.ts';
import { startRecordingUpstream } from '../http/support/recording-upstream.ts';
import { head, useHttpSystem } from '../http/support/system.ts';
import { createCustomerWithKey } from '../support/admin.ts';
import { shareOfNumbers, shareOfRuns } from '../support/share-of-runs.ts';
import { ANY_ROUTE } from './support.ts';

describe('an upload and the request pipelined behind it', () => {
  const system = useHttpSystem({ config: { routes: [ANY_ROUTE] as never } });
  let otherKey: string;
  beforeAll(async () => {
    otherKey = await createCustomerWithKey(system.gateway, {
      id: 'other',
      plan: 'enterprise',
      requests_per_hour: 100_000,
    });
  });

  const HIDDEN = 'GET /api/hidden HTTP/1.1\r\nHost: a\r\n\r\n';
  const UPLOADS = {
    'Content-Length': `Content-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    chunks: `Transfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n${(HIDDEN.length - 5).toString(16)};a="b"\r\n${HIDDEN.slice(5)}\r\n0\r\nX-T: 1\r\n\r\n`,
  };

  async function expectBoth(upload: string, cuts: readonly number[]): Promise<void> {
    const first = `POST /api/a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${system.key}\r\n${upload}`;
    const second = head('PUT /api/b HTTP/1.1', 'Host: a', `Authorization: Bearer ${otherKey}`, 'Content-Length: 1');
    const whole = `${first}${second}!`;
    const ends = [...new Set(cuts.map((cut) => cut % whole.length))].toSorted((a, b) => a - b);
    const pieces = [...ends, whole.length].map((end, i) => whole.slice(ends[i - 1] ?? 0, end));
    const { answers, seen, end, fault } = await system.attempt(pieces, { answers: 2 });
    expect(fault).toBeUndefined();
    expect([answers.map(({ status }) => status), end]).toEqual([[200, 200], 'kept']);
    expect(seen.map((request) => [request.method, request.target, request.content])).toEqual([
      ['POST', '/api/a', HIDDEN],
      ['PUT', '/api/b', '!'],
    ]);
    expect(seen.map((request) => fieldValue(request, 'x-tollgate-customer'))).toEqual(['acme', 'other']);
  }

  it.each(Object.entries(UPLOADS))('%s: are the same two requests, split at any byte', async (_, upload) => {
    const half = Math.ceil((upload.length + 2 * system.key.length + 200) / 2);
    for (const at of shareOfNumbers(half)) await expectBoth(upload, [at, at + half]);
  });

  it.each(Object.entries(UPLOADS))('%s: are the same two requests, split anywhere', async (_, upload) => {
    const cuts = fc.array(fc.nat(10_000), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(cuts, (places) => expectBoth(upload, places)),
      { numRuns: shareOfRuns(100, 20) },
    );
    const whole = Array.from({ length: 1000 }, (_, i) => i);
    await expectBoth(upload, whole);
  });
});

it('the chunks that a connection writes decode to exactly the parts of the body, whatever their sizes', async () => {
  const upstream = await startRecordingUpstream();
  const connect = createConnect(new URL(upstream.url), 5_000);
  const opened = Promise.withResolvers<void>();
  let freed = Promise.withResolvers<void>();
  const connection = new UpstreamConnection(connect, 16_384, {
    onOpen: opened.resolve,
    onFree: () => freed.resolve(),
    onGone: (error) => freed.reject(error ?? new Error('closed')),
  });
  await opened.promise;

  async function send(
    parts: readonly (readonly [length: number, pause: boolean])[],
    chunked: boolean,
  ): Promise<string> {
    const bytes = parts.map(([length], i) => Buffer.alloc(length, `${i}\r\n0\r\n\r\n`));
    const sent = Buffer.concat(bytes).toString('latin1');
    const framing = chunked ? ['Transfer-Encoding', 'chunked'] : ['Content-Length', String(sent.length)];
    freed = Promise.withResolvers();
    const mayStart = Promise.withResolvers<void>();
    const handler = {
      onSend: () => {
        mayStart.resolve();
        return true;
      },
      onHead() {},
      onContent() {},
      onPause() {},
      onError: (error: unknown) => freed.reject(error),
    };
    connection.send(
      requestHead('POST', '/', 'a', headerLine(framing[0] ?? '', framing[1] ?? '')),
      false,
      handler,
      chunked ? 'chunked' : 'length',
    );
    await mayStart.promise;
    for (const [i, part] of bytes.entries()) {
      connection.sendContent(part);
      if (parts[i]?.[1]) await new Promise((turn) => setImmediate(turn));
    }
    connection.endContent();
    await freed.promise;
    return sent;
  }

  const length = fc.oneof(
    fc.integer({ min: 1, max: 40 }),
    fc.integer({ min: 1, max: 70_000 }),
    fc.constantFrom(15, 16, 17, 255, 256),
  );
  const numRuns = shareOfRuns(150, 30);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(length, fc.boolean()), { maxLength: 8 }),
      fc.boolean(),
      async (parts, chunked) => {
        const sent = await send(parts, chunked);
        expect(upstream.faults).toEqual([]);
        expect(upstream.seen.at(-1)?.content === sent).toBe(true);
      },
    ),
    { numRuns },
  );
  expect(upstream.seen).toHaveLength(numRuns);
  connection.destroy();
  upstream.close();
});
