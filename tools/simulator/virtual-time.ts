import type { Scheduled } from '../../src/base/clock.ts';

interface Event {
  readonly atMs: number;
  /** Events of the same instant happen in the order in which they were planned. */
  readonly order: number;
  action: (() => void) | undefined;
}

/** True time of a simulated world, in ms since it began: one queue for everything that happens in it. */
export class VirtualTime {
  #nowMs = 0;
  #planned = 0;
  /** A binary heap. */
  readonly #events: Event[] = [];
  #standsStillFor: Promise<unknown> | undefined;

  get nowMs(): number {
    return this.#nowMs;
  }

  at(atMs: number, action: () => void): Scheduled {
    const event: Event = { atMs: Math.max(atMs, this.#nowMs), order: this.#planned++, action };
    this.#push(event);
    return {
      cancel: () => {
        event.action = undefined;
      },
    };
  }

  in(delayMs: number, action: () => void): Scheduled {
    return this.at(this.#nowMs + delayMs, action);
  }

  /** Between two events all promises that can settle do so. */
  async runUntil(endMs: number): Promise<void> {
    // The only turn of the event loop: a test that runs for too long is noticed here.
    await new Promise((resolve) => setImmediate(resolve));
    for (let next = this.#events[0]; next !== undefined && next.atMs <= endMs; next = this.#events[0]) {
      this.#pop();
      if (next.action === undefined) continue;
      this.#nowMs = next.atMs;
      next.action();
      await everythingSettled();
      while (this.#standsStillFor !== undefined) {
        const work = this.#standsStillFor;
        this.#standsStillFor = undefined;
        await work;
        await everythingSettled();
      }
    }
    this.#nowMs = Math.max(this.#nowMs, endMs);
  }

  /** Lets no time pass until `work`, which takes real time, is done. Called while an event happens. */
  standStillFor(work: Promise<unknown>): void {
    this.#standsStillFor = Promise.all([this.#standsStillFor, work]);
  }

  async run(durationMs: number): Promise<void> {
    await this.runUntil(this.#nowMs + durationMs);
  }

  #push(event: Event): void {
    const heap = this.#events;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parentAt = (at - 1) >> 1;
      const parent = heap[parentAt];
      if (parent === undefined || !isBefore(event, parent)) break;
      heap[at] = parent;
      at = parentAt;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#events;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]];
      const rightIsFirst = right !== undefined && left !== undefined && isBefore(right, left);
      const child = rightIsFirst ? right : left;
      if (child === undefined || !isBefore(child, last)) break;
      heap[at] = child;
      at = 2 * at + (rightIsFirst ? 2 : 1);
    }
    heap[at] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** A tick is next when no promise job is left, and costs a tenth of a turn of the event loop. */
function everythingSettled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
