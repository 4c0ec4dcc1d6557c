import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findPathFault } from '../../src/edge/path.ts';
import { ANY_CHARACTER } from '../support/any-character.ts';

const CONVERSATIONS = '/api/v1/conversations/';

describe('a path is accepted only if it has a single spelling', () => {
  it.each([
    'abc',
    'A-Z_0.9~',
    "!$&'()*+,=:@",
    'conv_01HZX3T7Q8',
    'a.b',
    '...',
    '.a',
    'caf%C3%A9',
    '%F0%9F%98%80',
    '%20',
    '%22',
    '%3C',
    '%7B',
    '%E2%82%AC',
    '%c3%a9',
    'a;b', // a valid path; the route table is what refuses it in an id
  ])('%s', (id) => {
    expect(findPathFault(CONVERSATIONS + id)).toBeUndefined();
  });
});

describe('a path is refused when', () => {
  it.each([
    ['it has a dot segment', ['.', '..', './a', '../a', 'a/..', 'a/.', 'a/../b']],
    ['a percent sign lacks its digits', ['%', '%4', '%zz', '%g0', '%0g', 'a%', '%%41', '%-1']],
    ['an unreserved character is encoded', ['%41', '%7A', '%30', '%2d', '%2D', '%2e', '%2E%2E', '%5f', '%7e']],
    ['a separator or a percent sign is encoded', ['%2f', '%2F', '..%2f..', '%5c', '%5C', '%25', '%252f', '%3b', '%3B']],
    ['a control character is encoded', ['%00', '%0a', '%0d%0a', '%1f', '%7f', '%7F', '%09', '%C2%80', '%c2%9f']],
    ['the bytes are not UTF-8', ['%ff', '%C3', '%C3%28', '%80', '%C0%80', '%ED%A0%80', '%F5%80%80%80', '%C3A']],
    [
      'a character may not stand in a path',
      ['a\\b', 'a"b', 'a<b', 'a^b', 'a`b', 'a{b}', 'a|b', 'a#b', 'a b', 'caf\u00e9', '\u0000'],
    ],
  ])('%s', (_, ids) => {
    for (const id of ids) expect(findPathFault(CONVERSATIONS + id), id).toBeDefined();
  });
});

it('every accepted path decodes, and encoding it again loses no byte', () => {
  fc.assert(
    fc.property(fc.string({ unit: ANY_CHARACTER, maxLength: 40 }), (id) => {
      const encoded = encodeURIComponent(id.toWellFormed());
      const fault = findPathFault(`/${encoded}`);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: controls are exactly what is looked for
      const forbidden = /[\x00-\x1f\x7f-\x9f/\\%;]/.test(id) || id === '.' || id === '..';
      expect(fault === undefined).toBe(!forbidden);
    }),
    { numRuns: 5000 },
  );
});

it('no byte sequence throws, and no accepted one contains a forbidden encoding', () => {
  const piece = fc.oneof(
    fc.constantFrom('/', '.', '..', '%', '%2', '%2e', '%2F', '%c3', '%a9', ';', 'a', '\u00ff'),
    fc.string({ unit: 'binary-ascii', maxLength: 3 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const path = `/${pieces.join('')}`;
      if (findPathFault(path) !== undefined) return;
      expect(path).not.toMatch(/%(?![0-9a-f]{2})|%2[5ef]|%5c|%3[0-9b]|%[46][1-9a-f]|%[01]./i);
      expect(path.split('/')).not.toContain('..');
      expect(path.split('/')).not.toContain('.');
    }),
    { numRuns: 5000 },
  );
});
