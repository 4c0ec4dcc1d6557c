import { setImmediate } from 'node:timers/promises';
import { StoreUnavailableError } from '../../../src/store/errors.ts';

interface OpenRead<Value> {
  readonly id: string;
  resolve(value: Value | undefined): void;
  reject(error: Error): void;
}

/** A source of records that answers when a test says so. Each way of answering waits until its readers have heard. */
export class HeldReads<Value> {
  /** The id of every read there was. */
  readonly asked: string[] = [];
  readonly #open: OpenRead<Value>[] = [];

  readonly read = (id: string): Promise<Value | undefined> => {
    this.asked.push(id);
    const { promise, resolve, reject } = Promise.withResolvers<Value | undefined>();
    this.#open.push({ id, resolve, reject });
    return promise;
  };

  get open(): number {
    return this.#open.length;
  }

  /** Answers the read that has waited longest. */
  answer(value: Value | undefined): Promise<void> {
    this.#next().resolve(value);
    return settled();
  }

  /** Answers the read that was started last, past all others. */
  answerLast(value: Value | undefined): Promise<void> {
    this.#open.unshift(...this.#open.splice(-1));
    return this.answer(value);
  }

  fail(error: Error = new StoreUnavailableError('away')): Promise<void> {
    this.#next().reject(error);
    return settled();
  }

  #next(): OpenRead<Value> {
    const next = this.#open.shift();
    if (next === undefined) throw new Error('nothing was read');
    return next;
  }
}

/** When everything that follows from what happened so far has happened. */
export function settled(): Promise<void> {
  return setImmediate();
}
