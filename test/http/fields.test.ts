import { describe, expect, it } from 'vitest';
import { readMetric } from '../support/metrics.ts';
import { fieldValue, fieldValues } from './support/http-reader.ts';
import { get, head, useHttpSystem } from './support/system.ts';

const system = useHttpSystem();
const { expectPassed } = system;
const PATH = '/v1/conversations';

/** Ways to write a name that some server takes for the same. */
function spellings(name: string): string[] {
  const separators = ['_', '.', '~', '!', '|', '*', "'", '`', '^', '+', '#', '$', '%', '&'];
  const mixed = [...name].map((character, i) => (i % 2 ? character.toUpperCase() : character.toLowerCase())).join('');
  return [
    ...new Set([
      name,
      name.toLowerCase(),
      name.toUpperCase(),
      mixed,
      ...separators.map((each) => name.replaceAll('-', each)),
    ]),
  ];
}

/** RFC 9110 §7.6.1, §11.7. */
const HOP_BY_HOP = [
  'Connection',
  'Keep-Alive',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Upgrade',
  'Proxy-Authorization',
  'Proxy-Authenticate',
  'HTTP2-Settings',
];
const SPOOFED = [
  'X-Tollgate-Customer',
  'X-Tollgate-Plan',
  'X-Tollgate-Key-Id',
  'X-Tollgate-Assertion',
  'X-Tollgate-Unheard-Of',
  'X-Forwarded-For',
  'X-Forwarded-Proto',
  'X-Forwarded-Host',
  'X-Forwarded-Port',
  'X-Forwarded-Prefix',
  'X-Forwarded',
  'Forwarded',
  'X-Real-IP',
  'X-Original-URL',
  'X-Original-URI',
  'X-Original-Host',
  'X-Rewrite-URL',
  'X-HTTP-Method-Override',
  'X-HTTP-Method',
  'X-Method-Override',
  'Proxy',
];

describe('fields that never reach the backend as sent', () => {
  it.each(HOP_BY_HOP)('%s, which ends at each hop', async (name) => {
    for (const spelling of spellings(name)) {
      if (/^connection$/i.test(spelling)) continue;
      const { seen } = await expectPassed(get(PATH, `${spelling}: marked-value`));
      expect(JSON.stringify(seen.fields)).not.toContain('marked-value');
    }
  });

  it.each(SPOOFED)('%s, however it is written', async (name) => {
    for (const spelling of spellings(name)) {
      const { seen } = await expectPassed(get(PATH, `${spelling}: marked-value`, `${spelling}: marked-value`));
      expect(JSON.stringify(seen.fields), spelling).not.toContain('marked-value');
    }
  });

  it('the headers that Connection names, wherever it is, but never those of the gateway', async () => {
    const added = [
      'X-Tollgate-Customer',
      'X-Request-Id',
      'X-Forwarded-For',
      'Via',
      'Host',
      'Authorization',
      'Content-Length',
    ];
    for (const named of [
      'X-Named',
      'x-named',
      ' X-NAMED ',
      'close, X-Named',
      'X-Named,',
      ',X-Named,,',
      ['X-Named', ...added].join(', '),
    ]) {
      for (const fields of [
        [`Connection: ${named}`, 'X-Named: marked-value'],
        ['X-Named: marked-value', `connection: ${named}`],
        ['Connection: x', 'X-Named: marked-value', `Connection: ${named}`],
      ]) {
        const { seen } = await expectPassed(get(PATH, ...fields));
        expect(JSON.stringify(seen.fields)).not.toContain('marked-value');
      }
    }
  });

  it("the client's key", async () => {
    for (const field of [
      'Authorization: Bearer KEY',
      'authorization: bearer KEY',
      'AUTHORIZATION:BEARER   KEY',
      'Authorization: Bearer KEY  ',
    ]) {
      const { seen } = await expectPassed(head(`GET ${PATH} HTTP/1.1`, 'Host: a', field));
      expect(JSON.stringify(seen)).not.toContain(system.key);
    }
  });

  it('a forged identity header is counted', async () => {
    const read = async () => (await readMetric(system.gateway, 'tollgate_spoofed_fields_total'))[''] ?? Number.NaN;
    const before = await read();
    await expectPassed(get(PATH, 'X-Tollgate-Customer: a', 'X_Tollgate_Plan: b', 'X-Forwarded-For: c', 'X-A: d'));
    expect(await read()).toBe(before + 2);
  });
});

describe('fields that reach the backend as they were sent', () => {
  it.each([
    'Accept',
    'Accept-Language',
    'Cookie',
    'User-Agent',
    'If-None-Match',
    'If-Modified-Since',
    'Range',
    'Cache-Control',
    'traceparent',
    'tracestate',
    'X-Customer-Own',
    'x_own',
    'X-Tollgates',
    'X-Forward',
    'X-Real',
    'Referer',
    'From',
    '!',
    "a'b",
    '~',
    '0',
  ])('%s, repeated, in order', async (name) => {
    const { seen } = await expectPassed(get(PATH, `${name}: 1`, 'X-Between: x', `${name}: 2, 3`, `${name}:`));
    const own = seen.fields.filter(([each]) => each === name || each === 'X-Between');
    expect(own).toEqual([
      [name, '1'],
      ['X-Between', 'x'],
      [name, '2, 3'],
      [name, ''],
    ]);
  });

  it('Via is extended by the version that was received', async () => {
    for (const version of ['1.0', '1.1']) {
      const { seen } = await expectPassed(get(PATH, 'Via: 1.1 a, 2 b').replace('HTTP/1.1', `HTTP/${version}`));
      expect(fieldValues(seen, 'via')).toEqual(['1.1 a, 2 b', `${version} tollgate`]);
    }
  });

  it('the request id, where it is a sane token', async () => {
    for (const id of ['a', 'abc-123', 'A.b_c:d=e@f+g/h-i']) {
      const { seen, answer } = await expectPassed(get(PATH, `X-Request-Id: ${id}`));
      expect([fieldValue(seen, 'x-request-id'), fieldValue(answer, 'x-request-id')]).toEqual([id, id]);
    }
    for (const id of ['', ' ', '-a', 'a b', 'a"b', 'a,b', 'x'.repeat(129), '<script>', '\xe9', 'KEY', 'xKEYx']) {
      const { seen } = await expectPassed(get(PATH, `X-Request-Id: ${id}`));
      expect(fieldValue(seen, 'x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    }
    const { seen } = await expectPassed(get(PATH, 'X-Request-Id: a', 'X-Request-Id: b'));
    expect(fieldValues(seen, 'x-request-id').length).toBe(1);
  });

  it('X-Forwarded-* say what the gateway saw', async () => {
    const { seen } = await expectPassed(
      get(PATH, 'X-Forwarded-For: 192.0.2.1', 'X-Forwarded-Host: evil', 'X-Forwarded-Proto: https'),
    );
    expect(fieldValues(seen, 'x-forwarded-for')).toEqual(['127.0.0.1']);
    expect(fieldValues(seen, 'x-forwarded-host')).toEqual(['api.example']);
    expect(fieldValues(seen, 'x-forwarded-proto')).toEqual(['http']);
  });
});
