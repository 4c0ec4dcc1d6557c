import { deserialize, serialize } from 'node:v8';
import { expect, test } from 'vitest';
import { parseConfig } from '../../../src/config/load.ts';
import { readToPrimary, readToWorker } from '../../../src/process/workers/messages.ts';

const FILE = `store: { url: "redis://:secret@127.0.0.1" }
upstream: { urls: ["http://127.0.0.1:3000"] }
plans: { starter: { requests_per_hour: 1000, formerly: [basic] }, enterprise: { requests_per_hour: custom } }
overrides: { vip: { requests_per_hour: 5 } }
workers: auto
`;

test('a configuration arrives unchanged, frozen and without prototypes', async () => {
  const config = await parseConfig('gateway.yaml', Buffer.from(FILE), {});
  const message = readToWorker(deserialize(serialize({ kind: 'start', workerId: 1, config })));
  if (message.kind !== 'start') throw new Error(message.kind);
  expect(message.config).toEqual(config);
  expect(Object.getPrototypeOf(message.config.aliases)).toBeNull();
  expect(Object.isFrozen(message.config.limits)).toBe(true);
  expect(() => (message.config.plans as Map<string, unknown>).set('x', 1)).toThrow(TypeError);
});

test.each([undefined, {}, { kind: 'stop' }, { kind: 'request', id: 1, request: { type: 'weather' } }])(
  'an invalid message is refused: %j',
  (message) => {
    expect(() => readToWorker(message)).toThrow();
    expect(() => readToPrimary(message)).toThrow();
  },
);
