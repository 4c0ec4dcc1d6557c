import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createApiKey,
  createKeyId,
  failsChecksum,
  isPossibleKey,
  keyPrefix,
  sha256Hex,
} from '../../src/formats/api-key.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

function fromBase62(text: string): bigint {
  return [...text].reduce((sum, digit) => sum * 62n + BigInt(ALPHABET.indexOf(digit)), 0n);
}

const randomness = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
const generated = randomness.map((bytes) => createApiKey(() => bytes));

describe('generated keys', () => {
  it('are tg_, the 32 random bytes in 43 base62 digits, and the CRC-32 of both in 6', () => {
    fc.assert(
      fc.property(randomness, (bytes) => {
        const key = createApiKey(() => bytes);
        expect(key).toMatch(/^tg_[0-9A-Za-z]{49}$/);
        expect(fromBase62(key.slice(3, 46))).toBe(BigInt(`0x${bytes.toString('hex')}`));
        expect(fromBase62(key.slice(46))).toBe(BigInt(crc32(key.slice(0, 46))));
      }),
    );
  });

  it('have exactly this text for known randomness', () => {
    expect(createApiKey((size) => Buffer.alloc(size))).toBe(`tg_${'0'.repeat(43)}3L6u1e`);
    expect(createApiKey((size) => Buffer.alloc(size, 0xff))).toBe(
      'tg_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp10Xwm86',
    );
  });

  it('differ from call to call', () => {
    expect(createApiKey()).not.toBe(createApiKey());
    expect(createKeyId()).not.toBe(createKeyId());
  });

  it('pass their own checksum and can be sent as bearer tokens', () => {
    fc.assert(fc.property(generated, (key) => !failsChecksum(key) && isPossibleKey(key)));
  });

  it('fail the checksum after any one character is replaced', () => {
    fc.assert(
      fc.property(generated, fc.nat(48), fc.constantFrom(...ALPHABET), (key, offset, digit) => {
        const at = offset + 3;
        fc.pre(key[at] !== digit);
        expect(failsChecksum(key.slice(0, at) + digit + key.slice(at + 1))).toBe(true);
      }),
    );
  });

  it('fail the checksum after two different neighbours are swapped', () => {
    fc.assert(
      fc.property(generated, fc.nat(47), (key, offset) => {
        const at = offset + 3;
        fc.pre(key[at] !== key[at + 1]);
        const swapped = key.slice(0, at) + key.charAt(at + 1) + key.charAt(at) + key.slice(at + 2);
        expect(failsChecksum(swapped)).toBe(true);
      }),
    );
  });
});

describe('the checksum', () => {
  it.each([
    'tg_demo_starter',
    `tg_${'a'.repeat(48)}`,
    `tg_${'a'.repeat(50)}`,
    `tk_${'a'.repeat(49)}`,
    'sk_live_12345678',
  ])('is not asked of %s, which has not the form of a generated key', (key) => expect(failsChecksum(key)).toBe(false));
});

describe('a possible key', () => {
  it('is token68 of 8 to 512 characters', () => {
    for (const token of ['a'.repeat(8), 'a'.repeat(512), 'AZaz09-._~+/', 'abcdefg=', 'abcdef==']) {
      expect(isPossibleKey(token), token).toBe(true);
    }
  });

  it('is nothing shorter, longer, or with other characters', () => {
    const impossible = [
      '',
      'a'.repeat(7),
      'a'.repeat(513),
      '========',
      'abc=defgh',
      'abcd efgh',
      'abcdefgh\n',
      'abcdefgé',
      'abcdefg,',
    ];
    for (const token of impossible) expect(isPossibleKey(token), JSON.stringify(token)).toBe(false);
  });
});

describe('what is shown of a key', () => {
  it('is the first 12 characters of a generated one', () => {
    fc.assert(fc.property(generated, (key) => keyPrefix(key) === key.slice(0, 12)));
  });

  it('leaves at least 24 characters of any key in the dark, or shows nothing', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 8, maxLength: 512 }), (key) => {
        const shown = keyPrefix(key);
        if (shown === undefined) return;
        expect(key.startsWith(shown)).toBe(true);
        expect(key.length - shown.length).toBeGreaterThanOrEqual(24);
        expect(shown.length).toBeLessThanOrEqual(12);
      }),
    );
  });

  it.each([
    [31, undefined],
    [32, 8],
    [36, 12],
    [512, 12],
  ])('of one with %i characters is %s of them', (length, shown) => {
    expect(keyPrefix('a'.repeat(length))?.length).toBe(shown);
  });
});

it('keys are stored under their SHA-256 in lower-case hex', () => {
  expect(sha256Hex('tg_demo_starter')).toBe(createHash('sha256').update('tg_demo_starter').digest('hex'));
});

it('key ids are key_ and 19 base62 characters, whatever the randomness', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 14, maxLength: 14 }), (bytes) => {
      expect(createKeyId(() => Buffer.from(bytes))).toMatch(/^key_[0-9A-Za-z]{19}$/);
    }),
  );
});
