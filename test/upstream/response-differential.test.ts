import fc from 'fast-check';
import { expect, test } from 'vitest';
import { shareOfRuns } from '../support/share-of-runs.ts';
import { DAMAGED_ANSWERS, GOOD_ANSWERS } from './support/answers.ts';
import { nodeAsker, ourAsker } from './support/askers.ts';
import type { Reading } from './support/response-reading.ts';
import { startRawUpstream } from './support/upstreams.ts';

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const QUOTED = '"[^"\\r\\n]*"';

/** What Node.js reads and we refuse on purpose, since another reader might take it for something else. */
const STRICTER: readonly (readonly [reason: string, RegExp])[] = [
  ['line ends before a status line', /(?:^|\r\n\r\n)[\r\n]+HTTP\//],
  ['a status outside of 100 to 599', /HTTP\/1\.[01] (?:0|[6-9])/],
  ['a version that is neither 1.0 nor 1.1', /HTTP\/(?!1\.[01] )/],
  ['101, or another interim answer of HTTP/1.0', /HTTP\/(?:1\.1 101|1\.0 1\d\d)/],
  ['framing of an interim answer', /HTTP\/1\.1 1\d\d[^\r\n]*\r\n(?:.+\r\n)*(?:content-length|transfer-encoding):/i],
  ['more digits of length than numbers hold', /\r\ncontent-length:[ \t]*[0-9]{16}/i],
  ['more digits of chunk size than numbers hold', /\r\n[0-9a-f]{13}/i],
  ['a coding that is not chunked alone', /\r\ntransfer-encoding:(?![ \t]*chunked[ \t]*\r\n)/i],
  ['a coding twice', /\r\ntransfer-encoding:.*\r\ntransfer-encoding:/is],
  ['a coding in HTTP/1.0', /HTTP\/1\.0 .*\r\ntransfer-encoding:/is],
  [
    'a chunk extension that is none',
    new RegExp(`\\r\\n[0-9a-f]+(?=;)(?!(?:;${TOKEN}(?:=(?:${TOKEN}|${QUOTED}))?)*\\r\\n)`, 'i'),
  ],
  ['framing among the trailers', /\r\n0.*\r\n(?:content-length|transfer-encoding):/is],
];

/** Both transports on answers that a real upstream sends and then closes the connection. */
async function startBoth() {
  let bytes = '';
  const upstream = await startRawUpstream((socket) => socket.end(bytes, 'latin1'));
  const askUs = ourAsker(upstream.port);
  const askNode = nodeAsker(upstream.port);
  return (sent: string, isHead: boolean): Promise<[ours: Reading, nodes: Reading]> => {
    bytes = sent;
    return Promise.all([askUs(isHead), askNode(isHead)]);
  };
}

test('a valid response is read as Node.js reads it, and as it was generated', async () => {
  const ask = await startBoth();
  await fc.assert(
    fc.asyncProperty(GOOD_ANSWERS, async ({ bytes, isHead, status, fields, content }) => {
      const [ours, nodes] = await ask(bytes, isHead);
      expect(ours).toMatchObject({ outcome: 'whole', status, fields, content });
      expect(ours).toEqual(nodes);
    }),
    { numRuns: shareOfRuns(500) },
  );
});

test('a damaged response is refused or read as Node.js reads it, and is refused if Node.js refuses it', async () => {
  const ask = await startBoth();
  await fc.assert(
    fc.asyncProperty(DAMAGED_ANSWERS, async ({ bytes, isHead }) => {
      const [ours, nodes] = await ask(bytes, isHead);
      if (ours.outcome === 'whole') expect(ours).toEqual(nodes);
      else if (nodes.outcome === 'whole') expect(STRICTER.filter(([, sign]) => sign.test(bytes))).not.toEqual([]);
    }),
    { numRuns: shareOfRuns(4_000) },
  );
});
