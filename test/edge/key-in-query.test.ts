import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasGeneratedKey } from '../../src/edge/credentials.ts';
import { createApiKey } from '../../src/formats/api-key.ts';

const KEY = createApiKey();
const MISTYPED = KEY.slice(0, -1) + (KEY.endsWith('a') ? 'b' : 'a');

const encoded = (text: string) => Buffer.from(text).toString('hex').replaceAll(/../g, '%$&');

describe('a key is seen', () => {
  it.each([
    ['under any name', `?api_key=${KEY}`],
    ['among others', `?limit=1&k=${KEY}&x=y`],
    ['as a name', `?${KEY}`],
    ['as a name with a value', `?${KEY}=1`],
    ['with a scheme', `?authorization=Bearer%20${KEY}`],
    ['with a plus for the space', `?authorization=Bearer+${KEY}`],
    ['within a longer value', `?url=https%3A%2F%2Fapi.example%2F%3Fkey%3D${KEY}%26a`],
    ['percent-encoded in part', `?k=${KEY.replace('_', '%5f')}`],
    ['percent-encoded in full', `?k=${encoded(KEY)}`],
    ['behind a bad percent sign', `?k=%${KEY}&j=%zz`],
    ['behind half of an encoded character', `?k=%f${encoded(KEY)}`],
    ['behind bytes that are not UTF-8', `?k=%ff${encoded(KEY)}%c3`],
    ['behind what only begins like one', `?k=tg_${KEY}`],
    ['behind another, mistyped one', `?k=${MISTYPED}${KEY}`],
    ['where a mistyped one ends', `?k=tg_${'A'.repeat(47)}${KEY}`],
    ['with more behind it', `?k=${KEY}abc`],
  ])('%s', (_, query) => {
    expect(hasGeneratedKey(query)).toBe(true);
  });
});

describe('other text is not mistaken for a key', () => {
  it.each([
    ['no query', ''],
    ['an empty query', '?'],
    ['a mistyped key', `?k=${MISTYPED}`],
    ['a cut key', `?k=${KEY.slice(0, -1)}`],
    ['a demo key', '?k=tg_demo_starter'],
    ['a key that is interrupted', `?k=${KEY.slice(0, 20)}&${KEY.slice(20)}`],
    ['a key that is encoded twice', `?k=${KEY.replace('_', '%255f')}`],
    ['another prefix', `?k=${KEY.replace('tg_', 'TG_')}`],
  ])('%s', (_, query) => {
    expect(hasGeneratedKey(query)).toBe(false);
  });
});

it('whatever surrounds it, and whichever of its characters are percent-encoded', () => {
  // Percent signs, half encoded characters and all that may stand in a query.
  const character = fc.oneof(
    fc.constantFrom('%', '%f', '%ff', '%C3', '%C3%A9', '%00', 'tg_', '&', '=', '+', '.', '/'),
    fc.integer({ min: 0x24, max: 0x7e }).map((code) => String.fromCharCode(code)),
  );
  const noise = fc.array(character, { maxLength: 60 }).map((parts) => parts.join(''));
  const choices = fc.array(fc.boolean(), { minLength: KEY.length, maxLength: KEY.length });
  fc.assert(
    fc.property(noise, noise, choices, (before, after, encodedAt) => {
      const written = [...KEY].map((each, i) => (encodedAt[i] ? encoded(each) : each)).join('');
      expect(hasGeneratedKey(`?${before}${written}${after}`)).toBe(true);
    }),
    { numRuns: 500 },
  );
});
