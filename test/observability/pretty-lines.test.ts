import { expect, it } from 'vitest';
import { createLogger } from '../../src/observability/logger.ts';
import { prettyLines } from '../../src/observability/pretty-lines.ts';

function logged(log: (logger: ReturnType<typeof createLogger>) => void, colors = false): string {
  const lines: string[] = [];
  const destination = prettyLines({ write: (line) => lines.push(line) }, { colors });
  log(createLogger({ level: 'info', destination }));
  return lines.join('').replaceAll(/\d\d:\d\d:\d\d\.\d\d\d/g, 'TIME');
}

it('a line has time, level, message and members, in this order', () => {
  expect(logged((log) => log.info({ plan: 'starter', status: 200, note: 'two words' }, 'request'))).toBe(
    'TIME INFO  request plan=starter status=200 note="two words"\n',
  );
});

it('an error shows its message beside the members and its stack below', () => {
  const error = Object.assign(new Error('no room'), { stack: 'Error: no room\n    at a.ts:1' });
  expect(logged((log) => log.error({ err: error }, 'it failed'))).toBe(
    'TIME ERROR it failed err={"type":"Error","message":"no room"}\n    Error: no room\n        at a.ts:1\n',
  );
});

it('a warning is colored on a terminal that has colors', () => {
  expect(logged((log) => log.warn('careful'), true)).toBe('TIME \x1b[33mWARN \x1b[0m careful\n');
});

it('control characters that a client sent do not reach the terminal', () => {
  const text = logged((log) => log.info({ id: '\x1b]0;owned\x07', c1: '\x9b2J' }, 'a \x1b[2J message'));
  expect(text).not.toMatch(/[^\P{Cc}\n]/u);
});

it('a line that is not JSON passes as it is', () => {
  const lines: string[] = [];
  prettyLines({ write: (line) => lines.push(line) }, { colors: false }).write('not JSON\n');
  expect(lines).toEqual(['not JSON\n']);
});
