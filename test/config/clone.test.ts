import { deserialize, serialize } from 'node:v8';
import { expect, test } from 'vitest';
import { deepFreeze, parseConfig } from '../../src/config/load.ts';

const FILE = `store: { url: "redis://:secret@127.0.0.1" }
upstream: { urls: ["http://127.0.0.1:3000"] }
plans: { starter: { requests_per_hour: 1000, formerly: [basic] }, enterprise: { requests_per_hour: custom } }
overrides: { vip: { requests_per_hour: 5 } }
workers: auto
`;

test('a configuration that was sent to a worker is unchanged and frozen', async () => {
  const config = await parseConfig('gateway.yaml', Buffer.from(FILE), {});
  const clone = deepFreeze(deserialize(serialize(config)));
  expect(clone).toEqual(config);
  expect(Object.isFrozen(clone.limits)).toBe(true);
  expect(() => (clone.plans as Map<string, unknown>).set('x', 1)).toThrow(TypeError);
});
