import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LruMap } from '../../src/base/lru-map.ts';

type Step = { readonly kind: 'get' | 'set' | 'delete' | 'clear'; readonly id: string };

const CAPACITY = 4;
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.oneof(
    { weight: 10, arbitrary: fc.constantFrom('get' as const, 'set' as const) },
    { weight: 3, arbitrary: fc.constant('delete' as const) },
    { weight: 1, arbitrary: fc.constant('clear' as const) },
  ),
  id: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'),
});

test('it holds what a list in the order of use would hold, cut to the capacity', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const map = new LruMap<string, number>(CAPACITY);
      let model: { id: string; value: number }[] = [];
      for (const [value, { kind, id }] of steps.entries()) {
        const entry = model.find((candidate) => candidate.id === id);
        const others = model.filter((candidate) => candidate.id !== id);
        if (kind === 'get') {
          expect(map.get(id)).toBe(entry?.value);
          if (entry) model = [...others, entry];
        } else if (kind === 'set') {
          map.set(id, value);
          model = [...others, { id, value }].slice(-CAPACITY);
        } else if (kind === 'delete') {
          map.delete(id);
          model = others;
        } else {
          map.clear();
          model = [];
        }
        expect(map.size).toBe(model.length);
      }
      for (const { id, value } of model) expect(map.get(id)).toBe(value);
    }),
  );
});

test('a large map evicts none of the last used three quarters, and holds as many entries as it may', () => {
  const capacity = 16;
  const ids = fc.integer({ min: 0, max: 2 * capacity });
  fc.assert(
    fc.property(fc.array(ids, { minLength: 100, maxLength: 300 }), (uses) => {
      const map = new LruMap<number, number>(capacity);
      let lastUsed: number[] = [];
      for (const id of uses) {
        if (map.get(id) === undefined) map.set(id, id);
        lastUsed = [...lastUsed.filter((other) => other !== id), id];
        const held = new Set(map.values());
        expect(held.size).toBe(Math.min(capacity, lastUsed.length));
        for (const recent of lastUsed.slice(-(3 * capacity) / 4)) expect(held.has(recent)).toBe(true);
      }
    }),
  );
});
