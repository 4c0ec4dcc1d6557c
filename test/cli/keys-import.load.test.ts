import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createApiKey, sha256Hex } from '../../src/formats/api-key.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { STORES, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';
import {
  CUSTOMER_DOCUMENT,
  problemDocument,
  startServer,
  temporaryFile,
  tollgateFor,
  tollgateHereFor,
} from './support.ts';

const HEADER = 'customer,value,sha256,name,expires_at';

/** Such as another system makes them. */
const foreignKey = () => `marked-${randomBytes(18).toString('base64url')}`;

describe.each(STORES)('over $name', (kind) => {
  let store: TestStore;
  let backend: Backend;
  let gateway: TestGateway;
  let tollgate: ReturnType<typeof tollgateHereFor>;

  beforeEach(async () => {
    store = await kind.start();
    backend = await startBackend((_req, res) => res.end('{}'));
    gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url });
    tollgate = tollgateHereFor(gateway);
    for (const id of ['acme', 'globex']) {
      await callAdmin(gateway, '/admin/v1/customers', { body: { id, plan: 'starter' } });
    }
  });

  afterEach(async () => {
    await gateway.close();
    await backend.close();
    await store.close();
  });

  const answerTo = async (key: string) =>
    (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status;

  async function importFile(lines: readonly string[], ...options: string[]) {
    const file = await temporaryFile('keys.csv', `${[HEADER, ...lines].join('\n')}\n`);
    const { stdout, stderr, ...rest } = await tollgate('keys', 'import', '--file', file, ...options);
    return { ...rest, stdout, stderr: stderr.replaceAll(file, 'keys.csv') };
  }

  it('makes keys work, by value and by digest, and says what became of each line', async () => {
    const [foreign, generated, digested] = [foreignKey(), createApiKey(), foreignKey()];
    const { status, stdout, stderr } = await importFile([
      `acme,${foreign},,"Acme, old",2100-01-01T00:00:00Z`,
      `globex,${generated},,,`,
      `globex,,${sha256Hex(digested).toUpperCase()},hashed,`,
    ]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^LINE +OUTCOME +CUSTOMER +KEY +NAME$/);
    expect(lines[1]).toMatch(/^ +2 +imported +acme +key_\w+ +Acme, old$/);
    expect(lines[3]).toMatch(/^ +4 +imported +globex +key_\w+ +hashed$/);
    for (const key of [foreign, generated, digested]) {
      expect(await answerTo(key)).toBe(200);
      expect(stdout).not.toContain(key);
      expect(stdout).not.toContain(sha256Hex(key));
    }
    const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/keys');
    expect(body.items).toMatchObject([{ name: 'Acme, old', expires_at: '2100-01-01T00:00:00.000Z' }]);
  });

  it('can be repeated: what is there already is left as it is, what is new is added', async () => {
    const [first, second] = [foreignKey(), foreignKey()];
    await importFile([`acme,${first},,first,`]);
    const again = await importFile([`acme,${first},,renamed,`, `acme,${second},,second,`], '--json');
    expect(again.status).toBe(0);
    expect(JSON.parse(again.stdout).items).toEqual([
      { line: 2, outcome: 'already there', customer: 'acme', key_id: null, name: 'renamed' },
      { line: 3, outcome: 'imported', customer: 'acme', key_id: expect.stringMatching(/^key_/), name: 'second' },
    ]);
    const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/keys');
    expect(body.items.map(({ name }: { name: string }) => name)).toEqual(['first', 'second']);
  });

  it('says as a dry run which keys are there already, and whose', async () => {
    const [own, taken] = [foreignKey(), foreignKey()];
    await importFile([`acme,${own},,,`, `globex,${taken},,,`]);
    const { status, stdout, stderr } = await importFile([`acme,${own},,,`, `acme,,${sha256Hex(taken)},,`], '--dry-run');
    expect(status).toBe(1);
    expect(stdout).toMatch(/^ +2 +already there +acme/m);
    expect(stdout).toMatch(/^ +3 +refused +acme/m);
    expect(stderr).toBe(
      'Nothing was imported.\nkeys.csv:3: Another customer has this key already.\nAll other lines would be imported.\n',
    );
  });

  it('imports nothing as a dry run, and says what it would do', async () => {
    const key = foreignKey();
    const { status, stdout, stderr } = await importFile([`acme,${key},,ci,`], '--dry-run');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^ +2 +would be imported +acme +ci$/m);
    expect(stderr).toContain('Nothing was imported.');
    expect(await answerTo(key)).toBe(401);
  });

  it.each([
    [
      'a line is malformed',
      ['globex,short,,,', 'acme,12345678,,,soon'],
      [/^keys\.csv:3: value: /, /^keys\.csv:4: expires_at: /],
    ],
    [
      'lines have faults of both kinds, also one line both',
      ['initech,12345678,,,', 'globex,short,,,', 'initech,tooshort,,,soon'],
      [/^keys\.csv:3: customer: /, /^keys\.csv:4: value: /, /^keys\.csv:5: expires_at: /, /^keys\.csv:5: customer: /],
    ],
    [
      'a customer does not exist',
      ['initech,12345678,,,'],
      [/^keys\.csv:3: customer: there is no customer with this id/],
    ],
  ])('imports nothing when %s, dry run or not', async (_what, badLines, messages) => {
    const good = foreignKey();
    for (const options of [[], ['--dry-run']]) {
      const { status, stdout, stderr } = await importFile([`acme,${good},,,`, ...badLines], ...options);
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      const lines = stderr.trimEnd().split('\n');
      expect(lines.slice(0, -1)).toEqual(messages.map((message) => expect.stringMatching(message)));
      expect(lines.at(-1)).toBe('Nothing was imported.');
    }
    expect(await answerTo(good)).toBe(401);
  });

  it('shows no value, even where columns were mixed up', async () => {
    const [value, other] = [foreignKey(), foreignKey()];
    const { status, stdout, stderr } = await importFile([`${value},${other},,,`]);
    expect(status).toBe(1);
    for (const key of [value, other]) expect(stdout + stderr).not.toContain(key);
  });

  it('says which line has a key of another customer, and imports the others', async () => {
    const [taken, free] = [foreignKey(), foreignKey()];
    await importFile([`globex,${taken},,,`]);
    const { status, stdout, stderr } = await importFile([`acme,${taken},,,`, `acme,${free},,,`]);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^ +2 +refused +acme/m);
    expect(stdout).toMatch(/^ +3 +imported +acme/m);
    expect(stderr).toMatch(/^keys\.csv:2: .*\(conflict\)\nAll other lines are imported\.\n$/);
    expect(stderr).not.toContain(taken);
    expect([await answerTo(taken), await answerTo(free)]).toEqual([200, 200]);
  });

  it('reads standard input', async () => {
    const key = foreignKey();
    const imported = await tollgateFor(gateway)(['keys', 'import', '--file', '-'], {
      input: `customer,value\nacme,${key}\n`,
    });
    expect(imported).toMatchObject({ status: 0, stderr: '' });
    expect(await answerTo(key)).toBe(200);
    const { stderr } = await tollgateFor(gateway)(['keys', 'import', '--file', '-'], {
      input: 'customer,value\nacme,short\n',
    });
    expect(stderr).toMatch(/^standard input:2: value: /);
  });
});

it('stops at a failure that the next line would meet too, and says how far it came', async () => {
  const problem = problemDocument({
    status: 503,
    title: 'Store away',
    detail: 'Try later.',
    code: 'store_unavailable',
  });
  const times = { created_at: null, expires_at: null };
  const restrictions = { scopes: null, allowed_addresses: null, requests_per_hour: null };
  const imported = { id: 'key_1', prefix: null, customer: 'acme', name: null, ...times, ...restrictions };
  let posts = 0;
  const admin = await startServer((req, res) => {
    res.setHeader('content-type', 'application/json');
    if (req.method === 'GET') {
      res.end(JSON.stringify(CUSTOMER_DOCUMENT));
    } else if (posts++ === 0) res.writeHead(201).end(JSON.stringify(imported));
    else res.writeHead(503).end(JSON.stringify(problem));
  });
  const lines = Array.from({ length: 40 }, (_, index) => `acme,key-number-${index}\n`);
  const file = await temporaryFile('keys.csv', `customer,value\n${lines.join('')}`);
  const { status, stdout, stderr } = await tollgateHereFor({ admin })('keys', 'import', '--file', file);
  expect(status).toBe(1);
  const outcomes = stdout.match(/imported|not known|not tried/g) ?? [];
  const countOf = (outcome: string) => outcomes.filter((each) => each === outcome).length;
  expect([countOf('imported'), countOf('not known'), outcomes.length]).toEqual([1, posts - 1, 40]);
  // So many calls are under way at once.
  expect(posts).toBeLessThanOrEqual(9);
  expect(stderr).toBe(
    'tollgate: Store away: Try later. (store_unavailable, request_id r1)\n' +
      'The import stopped. Run it again: existing records are not changed.\n',
  );
});

it('prints the faults of the file also when the gateway is unreachable', async () => {
  const file = await temporaryFile('keys.csv', 'customer,value\nacme,short\n');
  const { stderr } = await tollgateHereFor({ admin: 'http://127.0.0.1:1' })('keys', 'import', '--file', file);
  expect(stderr).toMatch(
    /^.*keys\.csv:2: value: .*\nThere may be more: cannot reach the admin API(?:.*\n)*Nothing was imported\.\n$/,
  );
});

it('says so when there is no such file', async () => {
  const { status, stderr } = await tollgateHereFor({ admin: 'http://127.0.0.1:1' })(
    'keys',
    'import',
    '--file',
    '/nowhere.csv',
  );
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: 'tollgate: /nowhere.csv: cannot be read: there is no such file\n',
  });
});
