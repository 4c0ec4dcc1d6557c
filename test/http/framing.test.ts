import { describe, expect, it } from 'vitest';
import type { ProblemCode } from '../../src/http/problems/table.ts';
import { fieldValue } from './support/http-reader.ts';
import { get, useHttpSystem } from './support/system.ts';

const { expectPassed, expectRefused } = useHttpSystem();
const PATH = '/v1/conversations';
/** What a server that took the refused framing for another one would see as a second request. */
const SECOND = get('/v1/conversations/smuggled');

const CODINGS = ['chunked', 'Chunked', 'CHUNKED', ' chunked', '\tchunked', 'chunked '];
const ODD_CODINGS = [
  ...[
    'chunked, chunked',
    'chunked,chunked',
    'chunked, gzip',
    'chunked, identity',
    'chunked;q=1',
    'chunked ;a=b',
    'chunked,',
    ',chunked',
  ],
  ...[
    'gzip, chunked',
    'identity, chunked',
    'x, chunked',
    ', ,chunked',
    'identity',
    'gzip',
    'deflate',
    'compress',
    'x-gzip',
    'br',
    'xchunked',
  ],
  ...[
    'chunkedx',
    'chunke',
    'chunk',
    'cow',
    '"chunked"',
    "'chunked'",
    'chunked\x0b',
    '\x0bchunked',
    '\x0cchunked',
    'chun\0ked',
    '\xa0chunked',
  ],
  ...['chun ked', 'chunked\xff', 'ch\u00fcnked', '', ' ', '0', 'null', 'chunked/1', 'Transfer-Encoding: chunked'],
];
const LENGTHS = ['1', '5', '00', '000', '01', '2147483648', '4294967296', '9007199254740992', '9223372036854775807'];
const ODD_LENGTHS = [
  ...[
    '',
    ' ',
    '-1',
    '-0',
    '+0',
    '+5',
    '0x0',
    '0x5',
    '0b0',
    '0o0',
    '1e0',
    '0.0',
    '0,0',
    '0, 0',
    '0,5',
    '5,0',
    '0;',
    '0 0',
    '0\t0',
    'zero',
    'NaN',
  ],
  ...[
    '0\x0b',
    '\x0b0',
    '0\0',
    '"0"',
    "'0'",
    '\xa00',
    '0\xa0',
    '18446744073709551616',
    '99999999999999999999999',
    '0_0',
    '\u00b2',
    '0 5',
    '0a',
    'a0',
  ],
];
const REFUSED: ProblemCode[] = ['bad_request', 'body_not_allowed', 'not_implemented'];

const methods = ['GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE'];
/** Expects the refusal of a request with a body, and that the connection is closed with it. */
async function expectBodyRefused(method: string, bytes: string): Promise<void> {
  const isRead = method === 'GET' || method === 'HEAD';
  const code = isRead ? 'body_not_allowed' : 'method_not_allowed';
  const answer = await expectRefused(bytes.replace('GET', method), code);
  expect(fieldValue(answer ?? { fields: [] }, 'connection'), bytes).toBe('close');
}

const names = ['Transfer-Encoding', 'transfer-encoding', 'TRANSFER-ENCODING', 'Transfer-encoding'];

describe('a transfer coding is refused and the connection closed', () => {
  it.each(methods)('%s with chunked content', async (method) => {
    for (const coding of CODINGS) {
      for (const content of ['0\r\n\r\n', '5\r\nabcde\r\n0\r\n\r\n', `0\r\n\r\n${SECOND}`, '']) {
        await expectBodyRefused(method, get(PATH, `Transfer-Encoding: ${coding}`) + content);
      }
    }
  });

  it.each(names)('any other one, by the name %s', async (name) => {
    for (const coding of ODD_CODINGS) {
      await expectRefused(`${get(PATH, `${name}: ${coding}`)}0\r\n\r\n${SECOND}`, ...REFUSED);
    }
  });

  it('an unknown coding is not implemented, an empty one is malformed (RFC 9112 §6.1)', async () => {
    for (const coding of ['gzip', 'gzip, chunked', 'identity', 'cow', 'xchunked']) {
      await expectRefused(get(PATH, `Transfer-Encoding: ${coding}`), 'not_implemented');
    }
    for (const coding of ['', ' ', '\t']) await expectRefused(get(PATH, `Transfer-Encoding:${coding}`), 'bad_request');
  });

  it('in several fields, in any order', async () => {
    for (const first of ['chunked', 'gzip', 'identity', '']) {
      for (const second of ['chunked', 'gzip', 'identity', '']) {
        await expectRefused(
          `${get(PATH, `Transfer-Encoding: ${first}`, `transfer-encoding: ${second}`)}0\r\n\r\n${SECOND}`,
          ...REFUSED,
        );
      }
    }
  });

  it('in HTTP/1.0, where there is none', async () => {
    for (const coding of [...CODINGS, 'identity', 'gzip, chunked', '']) {
      for (const connection of ['close', 'keep-alive']) {
        const bytes = get(PATH, `Transfer-Encoding: ${coding}`, `Connection: ${connection}`).replace(
          'HTTP/1.1',
          'HTTP/1.0',
        );
        await expectRefused(`${bytes}0\r\n\r\n${SECOND}`, ...REFUSED);
      }
    }
  });

  it('beside a length, in either order', async () => {
    for (const length of ['0', '5', '6', '-1', '']) {
      for (const coding of ['chunked', 'identity', 'gzip', 'xchunked', '']) {
        const fields = [`Content-Length: ${length}`, `Transfer-Encoding: ${coding}`];
        await expectRefused(`${get(PATH, ...fields)}0\r\n\r\n${SECOND}`, ...REFUSED);
        await expectRefused(`${get(PATH, ...fields.toReversed())}0\r\n\r\n${SECOND}`, ...REFUSED);
      }
    }
  });

  it('with chunk sizes that overflow, and with extensions without end', async () => {
    const sizes = [
      'f'.repeat(16),
      'f'.repeat(17),
      '1'.padEnd(33, '0'),
      `${'0'.repeat(5000)}5`,
      '-1',
      '0x5',
      '+5',
      '5 ',
      ' 5',
      '5;',
      `5;${'a'.repeat(30_000)}`,
      `5;${'a=b;'.repeat(9000)}`,
      'g',
      '',
    ];
    for (const method of ['GET', 'POST']) {
      for (const size of sizes) {
        const bytes = `${get(PATH, 'Transfer-Encoding: chunked')}${size}\r\nabcde\r\n0\r\n\r\n`;
        await expectBodyRefused(method, bytes);
      }
    }
  });
});

describe('a length other than 0 is refused and the connection closed', () => {
  it.each(methods)('%s with content', async (method) => {
    for (const length of LENGTHS) {
      await expectBodyRefused(method, get(PATH, `Content-Length: ${length}`) + SECOND);
    }
  });

  it.each(['Content-Length', 'content-length', 'CONTENT-LENGTH'])(
    'or one that is none, by the name %s',
    async (name) => {
      for (const length of ODD_LENGTHS) await expectRefused(get(PATH, `${name}: ${length}`) + SECOND, ...REFUSED);
    },
  );

  it('or two of them', async () => {
    for (const first of ['0', '5', '']) {
      for (const second of ['0', '5', '6', '']) {
        await expectRefused(get(PATH, `Content-Length: ${first}`, `Content-length: ${second}`) + SECOND, ...REFUSED);
      }
    }
  });

  it('also in HTTP/1.0', async () => {
    for (const length of [...LENGTHS, ...ODD_LENGTHS]) {
      await expectRefused(get(PATH, `Content-Length: ${length}`).replace('HTTP/1.1', 'HTTP/1.0') + SECOND, ...REFUSED);
    }
  });
});

describe('no content is no content', () => {
  it.each(['GET', 'HEAD'])('%s with Content-Length: 0 passes without it', async (method) => {
    for (const value of ['0', ' 0', '0 ', '\t0\t']) {
      await expectPassed(get(PATH, `Content-Length:${value}`).replace('GET', method));
    }
  });

  it('names that only look like those of framing are none, and do not pass', async () => {
    for (const name of [
      'Content_Length',
      'Content.Length',
      'Transfer_Encoding',
      'TRANSFER_ENCODING',
      'Transfer~Encoding',
      'Keep_Alive',
      'Proxy_Connection',
    ]) {
      await expectPassed(get(PATH, `${name}: chunked`));
    }
  });
});
