import { deserialize, serialize } from 'node:v8';
import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/load.ts';
import { readToPrimary, readToWorker } from '../../src/workers/messages.ts';

const FILE = `store: { url: "redis://:secret@127.0.0.1" }
upstream: { urls: ["http://127.0.0.1:3000"] }
plans: { starter: { requests_per_hour: 1000, formerly: [basic] }, enterprise: { requests_per_hour: custom } }
overrides: { vip: { requests_per_hour: 5 } }
workers: auto
`;

test('a configuration arrives as it was sent, and as it is relied on', async () => {
  const config = await parseConfig('gateway.yaml', Buffer.from(FILE), {});
  const told = readToWorker(deserialize(serialize({ kind: 'start', place: 1, config })));
  if (told.kind !== 'start') throw new Error(told.kind);
  expect(told.config).toEqual(config);
  expect(Object.getPrototypeOf(told.config.aliases)).toBeNull();
  expect(Object.isFrozen(told.config.limits)).toBe(true);
  expect(() => (told.config.plans as Map<string, unknown>).set('x', 1)).toThrow(TypeError);
});

test.each([undefined, {}, { kind: 'stop' }, { kind: 'ask', id: 1, question: { about: 'weather' } }])(
  'what is no message is refused: %j',
  (message) => {
    expect(() => readToWorker(message)).toThrow();
    expect(() => readToPrimary(message)).toThrow();
  },
);
