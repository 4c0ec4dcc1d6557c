/**
 * Random histories of several gateways, one store and one operator. What must hold in each: a gateway never says that a
 * key does not exist while the store lacks records that it should have.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InstallationMark } from '../../src/store/redis/installation/data-loss-detection.ts';

const NAME = 'test:installed';

interface Store {
  id: string | null;
  records: 'all' | 'some' | 'none';
}

/** As data-loss-detection.ts does it, at once. */
class Gateway {
  readonly mark = new InstallationMark();
  readonly #store: Store;

  constructor(store: Store, newId: string) {
    this.#store = store;
    if (store.id === null) store.id = newId;
    this.look();
  }

  look(): void {
    const toWrite = this.mark.see({ name: NAME, id: this.#store.id });
    if (toWrite !== undefined) this.#store.id ??= toWrite;
    if (this.mark.state === 'unknown') this.scan();
  }

  scan(): void {
    if (this.#store.records === 'none') this.mark.sawNoRecord();
    else this.mark.sawRecord();
  }

  pushedRecord(): void {
    if (this.#store.records !== 'none') this.mark.sawRecord();
  }

  flushed(): void {
    this.mark.doubt();
    this.look();
  }
}

const WHOLE = 'x'.repeat(32);

function wholeStore(): Store {
  return { id: WHOLE, records: 'all' };
}

function lose(store: Store): void {
  store.id = null;
  store.records = 'none';
}

describe('a gateway that was there before the loss', () => {
  test('leaves a mark for those that start later, and all end it when the data is restored', () => {
    const store = wholeStore();
    const old = new Gateway(store, 'a');
    lose(store);
    old.flushed();
    expect([old.mark.state, store.id]).toEqual(['wiped', `lost-${WHOLE}`]);
    const late = new Gateway(store, 'b');
    store.records = 'some';
    for (const gateway of [old, late, new Gateway(store, 'c')]) {
      gateway.pushedRecord();
      gateway.look();
      expect(gateway.mark.state).toBe('wiped');
    }
    Object.assign(store, wholeStore());
    for (const gateway of [old, late]) {
      gateway.look();
      expect(gateway.mark.state).toBe('whole');
    }
  });

  test('overwrites no id that a faster gateway wrote, and doubts the store all the same', () => {
    const store = wholeStore();
    const old = new Gateway(store, 'a');
    lose(store);
    const fast = new Gateway(store, 'b');
    old.flushed();
    expect([old.mark.state, fast.mark.state, store.id]).toEqual(['wiped', 'empty', 'b']);
    store.records = 'some';
    fast.pushedRecord();
    old.look();
    expect(old.mark.state).toBe('wiped');
    // The restore ends it for both: the id of the faster one proved nothing.
    Object.assign(store, wholeStore());
    for (const gateway of [old, fast]) {
      gateway.look();
      expect(gateway.mark.state).toBe('whole');
    }
  });
});

describe('a gateway that starts in an empty store', () => {
  test('doubts it until the first record', () => {
    const store: Store = { id: null, records: 'none' };
    const gateway = new Gateway(store, 'a');
    expect([gateway.mark.state, store.id]).toEqual(['empty', 'a']);
    store.records = 'some';
    gateway.pushedRecord();
    expect(gateway.mark.state).toBe('whole');
  });

  test('doubts it until an operator accepts it', () => {
    const store: Store = { id: null, records: 'none' };
    const gateway = new Gateway(store, 'a');
    store.id = 'init-1';
    gateway.look();
    expect(gateway.mark.state).toBe('whole');
    expect(new Gateway(store, 'b').mark.state).toBe('whole');
  });

  test('misses its own id from then on, and takes no other one for it once data may have been lost', () => {
    const store: Store = { id: null, records: 'none' };
    const gateway = new Gateway(store, 'a');
    store.records = 'all';
    gateway.pushedRecord();
    lose(store);
    store.id = 'b';
    gateway.flushed();
    expect(gateway.mark.state).toBe('wiped');
  });
});

test.each([
  ['lost', `lost-${WHOLE}`, 'wiped'],
  ['accepted', 'init-1', 'whole'],
  ['whole', WHOLE, 'whole'],
])('a gateway that starts with existing records trusts the mark: %s', (_, id, state) => {
  expect(new Gateway({ id, records: 'some' }, 'a').mark.state).toBe(state);
});

const STEPS = fc.array(
  fc.record({
    kind: fc.constantFrom('start', 'restart', 'lose', 'restore some', 'restore', 'look', 'push'),
    gateway: fc.nat(3),
  }),
  { maxLength: 40 },
);

test('as long as one gateway that knew the store notices a loss before another one starts, none takes part of it for all', () => {
  fc.assert(
    fc.property(STEPS, (steps) => {
      const store = wholeStore();
      let ids = 0;
      const gateways = [new Gateway(store, 'first')];
      for (const { kind, gateway: index } of steps) {
        if (kind === 'start') gateways.push(new Gateway(store, `id-${++ids}`));
        const place = index % gateways.length;
        // The first one goes on running.
        if (kind === 'restart' && place > 0) gateways[place] = new Gateway(store, `id-${++ids}`);
        if (kind === 'lose') {
          lose(store);
          gateways[0]?.flushed();
        }
        if (kind === 'restore some' && store.records !== 'all') store.records = 'some';
        if (kind === 'restore') {
          Object.assign(store, wholeStore());
          for (const each of gateways) each.look();
          for (const each of gateways) expect(each.mark.state).toBe('whole');
        }
        const gateway = gateways[place];
        if (kind === 'push') gateway?.pushedRecord();
        // Each miss brings the mark along.
        gateway?.look();
        if (store.records !== 'all') expect(gateway?.mark.state).not.toBe('whole');
      }
    }),
    { numRuns: 1000 },
  );
});
