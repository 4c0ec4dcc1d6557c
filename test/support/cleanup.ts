/** When what a test starts is closed: with the test, or after the last of the tests that share it. */
import { afterAll, beforeAll, onTestFinished } from 'vitest';

type Close = () => unknown;

/** Of {@link startShared} while it starts something; hooks run one after the other. */
let sharedClosers: Close[] | undefined;

/** Calls `close` when the current test ends or, within {@link startShared}, after the tests that share what it starts. */
export function closeAtEnd(close: Close): void {
  if (sharedClosers !== undefined) sharedClosers.push(close);
  else
    onTestFinished(async () => {
      await close();
    });
}

/** Starts something once for all tests of a file or `describe` block. Returns what gives it to a test. */
export function startShared<T>(start: () => Promise<T>): () => T {
  const closers: Close[] = [];
  let started: { readonly value: T } | undefined;
  beforeAll(async () => {
    sharedClosers = closers;
    try {
      started = { value: await start() };
    } finally {
      sharedClosers = undefined;
    }
  });
  afterAll(async () => {
    for (const close of closers.reverse()) await close();
  });
  return () => {
    if (started === undefined) throw new Error('it is started before the first test');
    return started.value;
  };
}
