import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { newWebhookSecret, parseWebhookSecret, signatureHeaders } from '../../src/formats/webhook-signature.ts';

const secretOf = (key: Uint8Array) => `whsec_${Buffer.from(key).toString('base64')}`;

describe('the signature', () => {
  test('is accepted by the reference library, whatever the secret, id and body', () => {
    const keys = fc.uint8Array({ minLength: 24, maxLength: 64 });
    const ids = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
    fc.assert(
      fc.property(keys, ids, fc.jsonValue(), (key, id, value) => {
        const body = JSON.stringify(value);
        const parsed = parseWebhookSecret(secretOf(key));
        const headers = signatureHeaders({ id, body }, parsed ? [parsed] : [], Date.now());
        expect(new Webhook(secretOf(key)).verify(body, { ...headers })).toEqual(JSON.parse(body));
      }),
    );
  });

  test('is accepted with the old and with the new secret while both are in force, and with no other', () => {
    const secrets = [newWebhookSecret(), newWebhookSecret()];
    const keys = secrets.flatMap((secret) => parseWebhookSecret(secret) ?? []);
    const body = '{"type":"quota.exceeded"}';
    const headers = { ...signatureHeaders({ id: 'msg_1', body }, keys, Date.now()) };
    for (const secret of secrets) expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
    expect(() => new Webhook(newWebhookSecret()).verify(body, headers)).toThrow();
    expect(() => new Webhook(secrets[0] ?? '').verify(`${body} `, headers)).toThrow();
  });
});

describe('a secret', () => {
  test('is "whsec_" and 24 to 64 bytes in base64', () => {
    const valid = [24, 25, 26, 64].map((length) => secretOf(new Uint8Array(length)));
    expect([...valid, valid[1]?.replace(/=+$/, '') ?? ''].map((text) => parseWebhookSecret(text)?.length)).toEqual([
      24, 25, 26, 64, 25,
    ]);
  });

  test.each([
    '',
    'whsec_',
    secretOf(new Uint8Array(23)),
    secretOf(new Uint8Array(65)),
    secretOf(new Uint8Array(32)).slice('whsec_'.length),
    `${secretOf(new Uint8Array(32))}\n`,
    `whsec_${'-_'.repeat(22)}`,
    `whsec_${'A'.repeat(33)}`,
    `whpk_${'A'.repeat(44)}`,
  ])('is not %j', (text) => expect(parseWebhookSecret(text)).toBeUndefined());
});
