/**
 * A holder of the write token posts a file to the preview that uses the gateway's environment or secrets: with
 * `auth.realm: ${TOLLGATE_ADMIN_TOKEN}` the token came back as the changed value, as a limit of a customer, and in the
 * hash; a posted literal that was not reported as changed was a right guess of the running secret. Nothing was recorded.
 */
import { writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { callAdmin, postPreview } from '../support/admin.ts';
import { ADMIN_TOKEN, type TestGateway } from '../support/gateway.ts';
import { startSystem } from '../support/system.ts';

const SECRET = '4711';
const variable = (name: string) => `\${${name}}`;

type Sections = Readonly<Record<string, unknown>>;

function fileOf(gateway: TestGateway, sections: Sections): string {
  return stringify({ ...gateway.sections, ...sections });
}

const preview = (gateway: TestGateway, sections: Sections) => postPreview(gateway, fileOf(gateway, sections));

/** Without what differs between any two problem documents. */
function verdictOf({ status, body }: Pick<Awaited<ReturnType<typeof preview>>, 'status' | 'body'>) {
  const { instance: _instance, request_id: _requestId, ...rest } = body;
  return { status, rest };
}

test('a variable that the running file does not use there is not replaced, whatever it holds', async () => {
  const expression = variable('SECRET');
  const sections = {
    auth: { realm: `x${expression}y`, cache_entries: `-${expression}` },
    usage_path: variable('SECRET:-/none'),
    plans: { starter: { requests_per_hour: expression } },
    listen: { host: '127.0.0.1', port: 0, trusted_proxies: [expression, '10.0.0.1'] },
    admin: { token: expression, token_file: expression },
  };
  const { gateway } = await startSystem({ environment: { SECRET } });
  const { status, body } = await preview(gateway, sections);
  expect(status).toBe(422);
  const lines: string[] = body.detail.split('\n');
  expect(lines.map((line) => /\(posted\):\d+: (.*): a preview replaces variables only/.exec(line)?.[1])).toEqual([
    'listen.trusted_proxies[0]',
    'admin.token',
    'admin.token_file',
    'auth.realm',
    'auth.cache_entries',
    'usage_path',
    'plans.starter.requests_per_hour',
  ]);
  expect(body.detail).not.toContain(SECRET);

  const { gateway: without } = await startSystem();
  expect(verdictOf(await preview(without, sections))).toEqual(verdictOf({ status, body }));
});

test('a variable that the running file uses there is replaced, and shown as written', async () => {
  const { gateway } = await startSystem({
    environment: { REALM: 'of-the-environment' },
    config: { auth: { realm: variable('REALM') } },
  });
  const same = await preview(gateway, {});
  expect(same.body).toMatchObject({ reload: 'unchanged', hash: same.body.running_hash, changes: [] });
  const { body } = await preview(gateway, { auth: { realm: 'another' } });
  expect(body.changes).toMatchObject([{ key: 'auth.realm', before: variable('REALM'), after: 'another' }]);
  expect(JSON.stringify(body)).not.toContain('of-the-environment');
});

test('a right guess of a secret is answered as a wrong one', async () => {
  const authorization = 'Basic marked-authorization';
  const { gateway } = await startSystem({ config: { upstream: { credentials: 'replace', authorization } } });
  const guess = (token: string, header: string) =>
    preview(gateway, {
      admin: { ...gateway.sections.admin, token },
      upstream: { ...gateway.sections.upstream, authorization: header },
    });
  const right = verdictOf(await guess(ADMIN_TOKEN, authorization));
  expect(right).toMatchObject({
    status: 200,
    rest: {
      reload: 'unchanged',
      changes: [],
      uncompared_secrets: ['admin.token', 'store.url', 'upstream.authorization'],
    },
  });
  expect(verdictOf(await guess('a-wrong-guess-of-the-token', 'Basic wrong'))).toEqual(right);
});

test('a preview is in the audit with its sender and without its content', async () => {
  const { gateway } = await startSystem();
  const file = fileOf(gateway, { auth: { realm: 'marked-realm' } });
  const { body } = await postPreview(gateway, file);
  await postPreview(gateway, 'nonsense: marked-realm');
  const { items } = (await callAdmin(gateway, '/admin/v1/audit')).body;
  const previews = items.filter(({ action }: { action: string }) => action === 'config.preview');
  expect(previews).toMatchObject([
    { actor: 'token', from: '127.0.0.1', details: { outcome: 'invalid', bytes: 22 } },
    { actor: 'token', from: '127.0.0.1', details: { outcome: 'previewed', bytes: file.length, hash: body.hash } },
  ]);
  const lines = gateway.logs.filter(({ action }) => action === 'config.preview');
  expect(lines).toHaveLength(2);
  expect(JSON.stringify([previews, lines])).not.toContain('marked-realm');
});

test('a preview opens only the file that the running file names for the same setting', async () => {
  const { gateway } = await startSystem();
  const known = `${gateway.file}.token`;
  await writeFile(known, 'a-token-in-a-file');
  const verdicts = [];
  for (const name of ['/dev/zero', '/proc/self/fd/1', known, `${gateway.file}.missing`]) {
    const { host, port } = gateway.sections.admin ?? {};
    verdicts.push(verdictOf(await preview(gateway, { admin: { host, port, token_file: name } })));
  }
  expect(verdicts[0]).toMatchObject({ status: 422 });
  expect(verdicts[0]?.rest.detail).toMatch(/admin\.token_file: a preview opens only the file that the running file/);
  for (const verdict of verdicts) expect(verdict).toEqual(verdicts[0]);

  await writeFile(known, ADMIN_TOKEN);
  const { gateway: naming } = await startSystem({ config: { admin: { token: '', token_file: known } } });
  expect((await preview(naming, {})).body).toMatchObject({ reload: 'unchanged' });
});
