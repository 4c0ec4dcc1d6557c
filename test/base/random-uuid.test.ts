import { expect, test } from 'vitest';
import { randomUuid } from '../../src/base/random-uuid.ts';

const COUNT = 10_000;

test('UUIDs are of version 4, all different, and every random digit takes all its values', () => {
  const uuids = Array.from({ length: COUNT }, randomUuid);
  expect(new Set(uuids).size).toBe(COUNT);
  for (const uuid of uuids) {
    expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
  const digitsAt = (at: number) => [...new Set(uuids.map((uuid) => uuid.charAt(at)))].sort().join('');
  const digits = Array.from({ length: 36 }, (_, at) => digitsAt(at));
  expect(digits.map((values) => values.length)).toEqual(
    Array.from('xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx', (kind) => ({ x: 16, y: 4 })[kind] ?? 1),
  );
});
