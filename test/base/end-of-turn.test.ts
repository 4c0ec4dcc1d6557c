import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { atEndOfTurn } from '../../src/base/end-of-turn.ts';

test('work runs in order at the end of the turn, and what it adds runs in the next turn', async () => {
  const ran: string[] = [];
  atEndOfTurn({
    onTurnEnd() {
      ran.push('first');
      atEndOfTurn({ onTurnEnd: () => ran.push('added') });
    },
  });
  atEndOfTurn({ onTurnEnd: () => ran.push('second') });
  expect(ran).toEqual([]);
  await new Promise(setImmediate);
  expect(ran).toEqual(['first', 'second']);
  await new Promise(setImmediate);
  expect(ran).toEqual(['first', 'second', 'added']);
});

test('an exception does not keep the rest of the work from running', () => {
  const script = `
    import { atEndOfTurn } from ${JSON.stringify(new URL('../../src/base/end-of-turn.ts', import.meta.url).href)};
    process.on('uncaughtException', (error) => console.log(error.message));
    atEndOfTurn({ onTurnEnd() { throw new Error('a bug'); } });
    for (const name of ['second', 'third']) atEndOfTurn({ onTurnEnd: () => console.log(name) });`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  expect(output).toBe('a bug\nsecond\nthird\n');
});
