/**
 * Requests, reads, changes in the store, pushes and failures in any order. The store takes note of a read at some time
 * between its being sent and its being answered; pushes come in the order of the changes, but sooner or later than the
 * answers to reads, as they do on a connection of their own.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RecordCache } from '../../../src/customers/keys/record-cache.ts';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
import { HeldClock } from './held-clock.ts';
import { settled } from './held-reads.ts';

const IDS = ['a', 'b', 'c', 'd'] as const;
type Id = (typeof IDS)[number];
const ENTRIES = 3;
const CACHE_MS = 30_000;
const MISSING_MS = 5000;

interface Item {
  readonly version: number;
}

type Step =
  | { readonly kind: 'request'; readonly id: Id }
  | { readonly kind: 'change'; readonly id: Id; readonly removed: boolean }
  | { readonly kind: 'execute' | 'answer' | 'fail'; readonly read: number }
  | { readonly kind: 'push' }
  | { readonly kind: 'pushAll' }
  | { readonly kind: 'prove' }
  | { readonly kind: 'wait'; readonly ms: number };

const id = fc.constantFrom(...IDS);
const anyRead = fc.nat(3);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('request' as const), id }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('change' as const), id, removed: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('execute' as const), read: anyRead }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('answer' as const), read: anyRead }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('fail' as const), read: anyRead }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('push' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pushAll' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('prove' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.constantFrom(1, 250, 1000, 4999, MISSING_MS, 24_000, CACHE_MS),
    }),
  },
);

/** One state of a record. */
interface Version {
  readonly number: number;
  readonly sinceMs: number;
  readonly item: Item | undefined;
}

interface OpenRead {
  readonly id: Id;
  /** Invalidations of the id that had been delivered when it was sent. */
  readonly epoch: number;
  executed: Version | undefined;
  resolve(item: Item | undefined): void;
  reject(error: Error): void;
}

/** What the cache may answer about one id. */
class Truth {
  readonly versions: Version[];
  /** The oldest version that may be answered: a push of it was delivered. */
  floor = 0;
  /** The same by pushes of everything, which hold unless a read has failed since. */
  softFloor = 0;
  epoch = 0;
  failures = 0;

  constructor(nowMs: number, item: Item | undefined) {
    this.versions = [{ number: 0, sinceMs: nowMs, item }];
  }

  get current(): Version {
    const current = this.versions.at(-1);
    if (current === undefined) throw new Error('no version');
    return current;
  }

  change(nowMs: number, removed: boolean): void {
    const number = this.current.number + 1;
    this.versions.push({ number, sinceMs: nowMs, item: removed ? undefined : { version: number } });
  }

  /** The version in force at a time. */
  at(ms: number): number {
    return this.versions.findLast(({ sinceMs }) => sinceMs <= ms)?.number ?? 0;
  }

  admits(item: Item | undefined, floor: number): boolean {
    return this.versions.some((version) => version.number >= floor && version.item?.version === item?.version);
  }
}

class Run {
  readonly #clock = new HeldClock();
  readonly #truths = new Map<Id, Truth>();
  readonly #pushes: { readonly id: Id; readonly version: number }[] = [];
  readonly #reads: OpenRead[] = [];
  readonly #faults: string[] = [];
  #waiting = 0;
  #provenAtMs = Number.NEGATIVE_INFINITY;
  readonly #cache = new RecordCache<Item>({
    read: (id) => this.#read(id as Id),
    unchanged: (held, read) => held.version === read.version,
    clock: this.#clock,
    provenAtMs: () => this.#provenAtMs,
    cacheMs: CACHE_MS,
    entries: ENTRIES,
    staleIfErrorMs: 100_000,
  });

  constructor() {
    for (const id of IDS) this.#truths.set(id, new Truth(this.#clock.nowMs(), id === 'd' ? undefined : { version: 0 }));
  }

  async replay(steps: readonly Step[]): Promise<void> {
    for (const step of steps) await this.#take(step);
    while (this.#reads.length > 0) await this.#take({ kind: 'answer', read: 0 });
    expect(this.#waiting, 'requests without an answer').toBe(0);
  }

  async #take(step: Step): Promise<void> {
    this.#apply(step);
    await settled();
    expect(this.#faults).toEqual([]);
    expect(this.#cache.size().records).toBeLessThanOrEqual(ENTRIES);
  }

  #apply(step: Step): void {
    switch (step.kind) {
      case 'request':
        this.#request(step.id);
        break;
      case 'change': {
        const truth = this.#truth(step.id);
        truth.change(this.#clock.nowMs(), step.removed);
        this.#pushes.push({ id: step.id, version: truth.current.number });
        break;
      }
      case 'execute': {
        const read = this.#reads[step.read];
        if (read) read.executed ??= this.#truth(read.id).current;
        break;
      }
      case 'answer': {
        const [read] = this.#reads.splice(step.read, 1);
        read?.resolve((read.executed ?? this.#truth(read.id).current).item);
        break;
      }
      case 'fail':
        this.#fail(this.#reads.splice(step.read, 1)[0]);
        break;
      case 'push':
        this.#push();
        break;
      case 'pushAll':
        this.#cache.invalidateAll();
        for (const truth of this.#truths.values()) {
          truth.softFloor = truth.current.number;
          truth.epoch += 1;
        }
        break;
      case 'prove':
        // The pushes of all changes have come.
        if (this.#pushes.length === 0) this.#provenAtMs = this.#clock.monotonicMs();
        break;
      case 'wait':
        this.#clock.advance(step.ms);
        break;
    }
  }

  #push(): void {
    const push = this.#pushes.shift();
    if (push === undefined) return;
    this.#cache.invalidate(push.id);
    const truth = this.#truth(push.id);
    truth.floor = push.version;
    truth.epoch += 1;
  }

  #fail(read: OpenRead | undefined): void {
    if (read === undefined) return;
    const truth = this.#truth(read.id);
    truth.failures += 1;
    // A read of before the push says nothing about the store of after it.
    if (read.epoch === truth.epoch) truth.softFloor = 0;
    read.reject(new StoreUnavailableError('away'));
  }

  #read(id: Id): Promise<Item | undefined> {
    const { epoch } = this.#truth(id);
    if (this.#reads.some((read) => read.id === id && read.epoch === epoch)) this.#faults.push(`${id} is read twice`);
    const { promise, resolve, reject } = Promise.withResolvers<Item | undefined>();
    this.#reads.push({ id, epoch, executed: undefined, resolve, reject });
    return promise;
  }

  #request(id: Id): void {
    const truth = this.#truth(id);
    const { failures, floor } = truth;
    const pushedFloor = Math.max(floor, truth.softFloor);
    const check = (item: Item | undefined, oldest: number) => {
      if (!truth.admits(item, oldest)) this.#faults.push(`${id}: ${item?.version} was answered, older than ${oldest}`);
    };
    const answer = this.#cache.get(id);
    if (!(answer instanceof Promise)) {
      const nowMs = this.#clock.nowMs();
      const oldestMs = nowMs - (answer === undefined ? MISSING_MS : CACHE_MS);
      check(answer, Math.max(pushedFloor, truth.failures === 0 ? truth.at(oldestMs) : 0));
      return;
    }
    this.#waiting += 1;
    const hadFailure = () => truth.failures > failures;
    answer
      .then(
        (item) => check(item, hadFailure() ? floor : pushedFloor),
        (error) => {
          if (!hadFailure() || !(error instanceof StoreUnavailableError)) this.#faults.push(`${id}: ${error}`);
        },
      )
      .finally(() => {
        this.#waiting -= 1;
      });
  }

  #truth(id: Id): Truth {
    const truth = this.#truths.get(id);
    if (truth === undefined) throw new Error(`no record ${id}`);
    return truth;
  }
}

test('nothing older is answered than what was pushed, or than the time to cache; nothing is read twice at once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), (steps) => new Run().replay(steps)),
    { numRuns: 1000 },
  );
}, 60_000);
