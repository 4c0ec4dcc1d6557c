import { describe, expect, test } from 'vitest';
import { configChanges, disclosedChanges, uncomparedSecrets } from '../../src/config/config-changes.ts';
import { parseConfig } from '../../src/config/load.ts';
import { newWebhookSecret } from '../../src/formats/webhook-signature.ts';
import { load, MINIMAL, problemsOf, withFolder } from './support.ts';

const [SECRET, OLD_SECRET] = [newWebhookSecret(), newWebhookSecret()];
const URL = 'https://ops.example/hooks/tollgate';

/** A configuration with one endpoint: `members` of it in flow style. */
const withEndpoint = (members: string) => `${MINIMAL}notices: { endpoints: [{ ${members} }] }\n`;

describe('notices', () => {
  test('are off without their section', async () => {
    expect((await load(MINIMAL)).notices).toBeUndefined();
  });

  test('tell of 80 and 95 percent, and of expiry a week and a day before, if the file does not say', async () => {
    const { notices } = await load(`${MINIMAL}notices: {}\n`);
    expect(notices).toEqual({ endpoints: [], levels: [80, 95], keyExpiryDays: [1, 7] });
  });

  test('have their levels and days in order', async () => {
    const { notices } = await load(`${MINIMAL}notices: { levels: [99, 50], key_expiry_days: [30] }\n`);
    expect(notices).toEqual({ endpoints: [], levels: [50, 99], keyExpiryDays: [30] });
  });

  test('are signed with the secret of a file, and with two while it is rotated', async () => {
    await withFolder({ secret: `${SECRET}\n${OLD_SECRET}\n` }, async (folder) => {
      const yaml = Buffer.from(withEndpoint(`url: "${URL}", secret_file: secret`));
      const { notices } = await parseConfig('gateway.yaml', yaml, {}, { folder });
      expect(notices?.endpoints).toEqual([{ url: URL, secrets: [SECRET, OLD_SECRET], allowPrivate: false }]);
    });
  });

  test.each([
    ['http://ops.example/', false],
    ['https://127.0.0.1/', false],
    ['https://localhost/', false],
    ['http://127.0.0.1:9000/', true],
    ['https://10.0.0.1/', true],
  ])('to %s need allow_private', async (url, allowed) => {
    const endpoint = `url: "${url}", secret: "${SECRET}"`;
    expect(await problemsOf(withEndpoint(endpoint))).toEqual([
      'gateway.yaml:3: notices.endpoints[0].url: must be https:// and not an address of a private network, unless allow_private is true',
    ]);
    const { notices } = await load(withEndpoint(`${endpoint}, allow_private: true`));
    expect(notices?.endpoints[0]?.allowPrivate || allowed).toBe(true);
  });
});

describe('a problem of notices', () => {
  const at = (path: string, what: string) => `gateway.yaml:3: notices.${path}: ${what}`;
  const FORM = 'must be "whsec_" followed by 24 to 64 random bytes in base64';

  test.each([
    [`url: "${URL}"`, at('endpoints[0].secret', 'is required, as secret or secret_file')],
    [`url: "${URL}", secret: ""`, at('endpoints[0].secret', 'is required, as secret or secret_file')],
    [`url: "${URL}", secret: "whsec_short"`, at('endpoints[0].secret', FORM)],
    [`url: "${URL}", secret: "${SECRET} ${SECRET}"`, at('endpoints[0].secret', FORM)],
    [
      `url: "${URL}", secret: "${SECRET}\\n${SECRET}\\n${SECRET}"`,
      at('endpoints[0].secret', 'must have at most two lines: the new secret and the old one'),
    ],
    [
      `url: "https://user:password@ops.example/", secret: "${SECRET}"`,
      at(
        'endpoints[0].url',
        'must be http(s)://host[:port]/path of at most 2048 characters, without @ or \\ before the path and without a fragment',
      ),
    ],
  ])('%s', async (endpoint, problem) => expect(await problemsOf(withEndpoint(endpoint))).toEqual([problem]));

  test('is a value that is listed twice, or out of bounds', async () => {
    expect(await problemsOf(`${MINIMAL}notices: { levels: [80, 80, 100], key_expiry_days: [0] }\n`)).toEqual([
      at('levels[2]', 'must be an integer of percent from 1 to 99, got 100'),
      at('key_expiry_days[0]', 'must be an integer of days from 1 to 365, got 0'),
      at('levels[1]', 'is listed already; keep one'),
    ]);
    const twice = `{ url: "${URL}", secret: "${SECRET}" }`;
    expect(await problemsOf(`${MINIMAL}notices: { endpoints: [${twice}, ${twice}] }\n`)).toEqual([
      at('endpoints[1].url', 'is that of endpoints[0] too'),
    ]);
  });
});

describe('the secret of an endpoint', () => {
  const configs = () =>
    Promise.all([SECRET, OLD_SECRET].map((secret) => load(withEndpoint(`url: "${URL}", secret: "${secret}"`))));

  test('is in no view of the configuration and not in its hash', async () => {
    const [one, other] = await configs();
    expect(JSON.stringify(one?.disclosed)).not.toContain('whsec_');
    expect(one?.disclosed).toMatchObject({ notices: { endpoints: [{ url: URL, secret: '(secret)' }] } });
    expect(one?.hash).toBe(other?.hash);
  });

  test('is a change that a reload applies, and that a preview cannot compare', async () => {
    const [one, other] = await configs();
    if (!one || !other) throw new Error('no configuration');
    const change = { key: 'notices.endpoints', text: 'notices.endpoints: another value', takesEffect: 'reload' };
    expect(configChanges(one, other)).toEqual([expect.objectContaining(change)]);
    expect(configChanges(one, one)).toEqual([]);
    expect(disclosedChanges(one, other)).toEqual([]);
    expect(uncomparedSecrets(one, other)).toContain('notices.endpoints');
    expect(uncomparedSecrets(await load(MINIMAL), await load(MINIMAL))).not.toContain('notices.endpoints');
  });
});
