import fc from 'fast-check';

/** Between them are the surrogates, which are no characters. */
const [LAST_BELOW, FIRST_ABOVE] = [0xd7ff, 0xe000];
const GAP = FIRST_ABOVE - LAST_BELOW - 1;

/**
 * Any Unicode character, for `fc.string`. The unit `binary` of fast-check has the same ones, but lists all 1,112,064 of
 * them, which takes a second in each process.
 */
export const ANY_CHARACTER = fc.nat({ max: 0x10ffff - GAP }).map(
  (index) => String.fromCodePoint(index <= LAST_BELOW ? index : index + GAP),
  (character) => {
    const code = typeof character === 'string' ? character.codePointAt(0) : undefined;
    if (code === undefined || String.fromCodePoint(code) !== character) throw new Error('is not one character');
    if (code > LAST_BELOW && code < FIRST_ABOVE) throw new Error('is a surrogate');
    return code <= LAST_BELOW ? code : code - GAP;
  },
);
