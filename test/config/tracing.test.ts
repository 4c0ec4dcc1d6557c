import { describe, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { configChanges } from '../../src/config/config-changes.ts';
import { parseConfig } from '../../src/config/load.ts';
import { load, MINIMAL, problemsOf, withFolder } from './support.ts';

const ENDPOINT = 'http://collector:4318/v1/traces';

/** A configuration with a section of these members, in flow style. */
const withTracing = (members: string) => `${MINIMAL}tracing: { ${members} }\n`;

const parse = (folder: string, members: string) =>
  parseConfig('gateway.yaml', Buffer.from(withTracing(members)), {}, { folder });

test('traces are off without their section', async () => {
  expect((await load(MINIMAL)).tracing).toBeUndefined();
});

test('one request in a hundred is traced, no proxy is trusted and no customer named, if the file does not say', async () => {
  const { tracing } = await load(withTracing(`endpoint: "${ENDPOINT}"`));
  expect(tracing).toEqual({
    endpoint: ENDPOINT,
    exportHeaders: {},
    sampleRatio: 0.01,
    trustParent: false,
    customer: false,
  });
});

describe('headers for the collector', () => {
  const members = `endpoint: "${ENDPOINT}", headers_file: headers`;

  test('are those of a file, one on each line', async () => {
    await withFolder({ headers: 'Authorization: Basic a:b=\r\n\nX-Scope-OrgID:\ttenant 1 \n' }, async (folder) => {
      const { tracing } = await parse(folder, members);
      expect(tracing?.exportHeaders).toEqual({ authorization: 'Basic a:b=', 'x-scope-orgid': 'tenant 1' });
    });
  });

  test.each(['Authorization', 'a b: c', 'A: 1\na: 2', 'A:', 'A: b\u0001c', ': x'])('are not %j', async (headers) => {
    await withFolder({ headers }, async (folder) => {
      await expect(parse(folder, members)).rejects.toThrow(
        'tracing.headers_file: must name a file with lines such as "Authorization: Bearer …", each name once',
      );
    });
  });

  test('are disclosed nowhere, and not part of the hash, but a change of them is found', async () => {
    const configs: Config[] = [];
    for (const value of ['first-secret', 'second-secret']) {
      await withFolder({ headers: `Authorization: ${value}` }, async (folder) => {
        configs.push(await parse(folder, members));
      });
    }
    const [before, after] = configs;
    if (before === undefined || after === undefined) throw new Error('two configurations were parsed');
    expect(JSON.stringify(before.disclosed)).not.toContain('secret');
    expect(before.hash).toBe(after.hash);
    expect(configChanges(before, after)).toMatchObject([
      { key: 'tracing.headers_file', text: 'tracing.headers_file: another value', takesEffect: 'reload' },
    ]);
  });

  test('over http to another machine are warned of', async () => {
    await withFolder({ headers: 'Authorization: secret' }, async (folder) => {
      const warningsWith = async (endpoint: string) =>
        (await parse(folder, `endpoint: "${endpoint}", headers_file: headers`)).warnings;
      expect(await warningsWith(ENDPOINT)).toEqual([
        'gateway.yaml:3: warning: tracing.endpoint: is not https: the credentials in headers_file can be read on the network',
      ]);
      expect(await warningsWith('http://127.0.0.1:4318/v1/traces')).toEqual([]);
      expect(await warningsWith('https://collector.example/v1/traces')).toEqual([]);
    });
  });
});

const ENDPOINT_RULE =
  'must be http(s)://host[:port]/path, without credentials and fragment; put credentials into headers_file';

test.each([
  ['endpoint: "collector:4318"', `endpoint: ${ENDPOINT_RULE}`],
  ['endpoint: "http://user:password@collector/"', `endpoint: ${ENDPOINT_RULE}`],
  ['endpoint: "grpc://collector:4317"', `endpoint: ${ENDPOINT_RULE}`],
  [`endpoint: "${ENDPOINT}", sample_ratio: 1.1`, 'sample_ratio: must be a number from 0 to 1, got 1.1'],
  [`endpoint: "${ENDPOINT}", sample_ratio: "half"`, 'sample_ratio: must be a number from 0 to 1, got text'],
  [`endpoint: "${ENDPOINT}", sample_ratio: -0.1`, 'sample_ratio: must be a number from 0 to 1, got -0.1'],
])('%s is a problem', async (members, problem) => {
  expect(await problemsOf(withTracing(members))).toEqual([`gateway.yaml:3: tracing.${problem}`]);
});

test('without an endpoint there is nothing to trace to', async () => {
  expect(await problemsOf(withTracing('sample_ratio: 1'))).toEqual([
    `gateway.yaml:3: tracing.endpoint: is required and ${ENDPOINT_RULE}`,
  ]);
});
