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
