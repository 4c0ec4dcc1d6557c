// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what the configuration's own substitutions look like
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { substitute } from '../../src/config/environment.ts';

const env = { NAME: 'value', EMPTY: '', TRICKY: '${NAME} $${' };

describe('substitution', () => {
  test.each([
    ['plain', 'plain'],
    ['${NAME}', 'value'],
    ['a-${NAME}-${NAME}-b', 'a-value-value-b'],
    ['${NAME:-other}', 'value'],
    ['${EMPTY}', ''],
    ['${EMPTY:-other}', 'other'],
    ['${UNSET:-other}', 'other'],
    ['${UNSET:-}', ''],
    ['${UNSET:-a:-b $x}', 'a:-b $x'],
    ['$${NAME}', '${NAME}'],
    ['$$${NAME}', '$${NAME}'],
    ['$$ $NAME {NAME} $', '$$ $NAME {NAME} $'],
    ['${TRICKY}', '${NAME} $${'],
  ])('%s becomes %s', (source, text) => {
    expect(substitute(source, env)).toEqual({ ok: true, text });
  });

  test.each(['${}', '${A B}', '${NAME', '${NAME:-x', '${1A}', '${NAME:x}', '${NAME-x}', 'a${'])(
    '%s is malformed',
    (source) => {
      expect(substitute(source, env)).toEqual({
        ok: false,
        faults: [expect.stringContaining('does not begin ${NAME}')],
      });
    },
  );

  test('defaults do not nest', () => {
    expect(substitute('${UNSET:-${NAME}}', env)).toEqual({
      ok: false,
      faults: [expect.stringContaining('does not begin ${NAME}')],
    });
  });

  test('every unset variable is named', () => {
    expect(substitute('${A}${NAME}${B}', env)).toEqual({
      ok: false,
      faults: [
        'environment variable A is not set; set it, or write ${A:-default}',
        'environment variable B is not set; set it, or write ${B:-default}',
      ],
    });
  });

  test('what an object inherits is not a variable', () => {
    expect(substitute('${constructor}', {}).ok).toBe(false);
  });

  const nearMisses = fc.string({ unit: fc.constantFrom('$', '{', '}', ':', '-', 'A', '_', '1', ' ', '\n', 'é') });

  test('any literal text survives when each ${ in it is written $${', () => {
    fc.assert(
      fc.property(fc.oneof(nearMisses, fc.string()), (literal) => {
        expect(
          substitute(
            literal.replaceAll('${', () => '$${'),
            env,
          ),
        ).toEqual({ ok: true, text: literal });
      }),
    );
  });

  test('any value is taken literally', () => {
    fc.assert(
      fc.property(nearMisses, (value) => {
        expect(substitute('<${A}>', { A: value })).toEqual({ ok: true, text: `<${value}>` });
      }),
    );
  });

  test('no text makes it throw, and without "${" nothing changes', () => {
    fc.assert(
      fc.property(nearMisses, (source) => {
        const result = substitute(source, env);
        if (!source.includes('${')) expect(result).toEqual({ ok: true, text: source });
        if (!result.ok) expect(result.faults.length).toBeGreaterThan(0);
      }),
    );
  });
});
