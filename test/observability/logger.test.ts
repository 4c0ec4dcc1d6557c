import { expect, it } from 'vitest';
import { createLogger, type LogLevel } from '../../src/observability/logger.ts';

function openLog(level: LogLevel = 'info') {
  const lines: string[] = [];
  return { lines, logger: createLogger({ level, destination: { write: (line) => void lines.push(line) } }) };
}

it('a line is one JSON object with level, time, the members given and msg, and nothing else', () => {
  const { lines, logger } = openLog();
  logger.warn({ store: 'redis', left_out: undefined }, 'store lost');
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^[^\n]*\n$/);
  const { time, ...rest } = JSON.parse(lines[0] ?? '');
  expect(rest).toEqual({ level: 'warn', store: 'redis', msg: 'store lost' });
  expect(new Date(time).toISOString()).toBe(time);
});

it('lines below the level are not written', () => {
  const { lines, logger } = openLog('error');
  logger.info('not this');
  logger.error('but this');
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['but this']);
});

it('a line break in a text cannot forge a second line', () => {
  const { lines, logger } = openLog();
  logger.info({ name: 'a\n{"level":"fatal"}' }, 'x\ny');
  expect(lines.join('').trimEnd()).not.toContain('\n');
});

it('an error shows its type, message, code, stack and causes, none of what libraries hang onto it, and no secret', () => {
  const cause = Object.assign(new TypeError('WRONGPASS for redis://app:hunter2hunter2@store'), {
    code: 'WRONGPASS',
    command: { name: 'auth', args: ['hunter2hunter2'] },
  });
  const error = Object.assign(new Error('could not look up tg_marked_marked_marked', { cause }), {
    headers: { authorization: 'Bearer tg_marked_marked_marked' },
    body: '{"token":"marked"}',
  });
  const { lines, logger } = openLog();
  logger.error({ err: error }, 'failed');
  logger.error(error);
  logger.error({ err: error });
  for (const line of lines) {
    expect(line).not.toContain('hunter2');
    expect(line).not.toContain('marked');
  }
  expect(JSON.parse(lines[0] ?? '').err).toEqual({
    type: 'Error',
    message: 'could not look up tg_[redacted]',
    stack: expect.stringContaining('logger.test.ts'),
    cause: {
      type: 'TypeError',
      code: 'WRONGPASS',
      message: 'WRONGPASS for redis://[redacted]@store',
      stack: expect.any(String),
    },
  });
});

it('whatever is thrown can be logged, a chain of causes without end included', () => {
  const { lines, logger } = openLog();
  const loop = new Error('loop');
  loop.cause = loop;
  for (const err of ['text', undefined, null, 7, Object.create(null), loop]) logger.error({ err }, 'failed');
  expect(lines).toHaveLength(6);
  for (const line of lines) expect(JSON.parse(line).msg).toBe('failed');
});
