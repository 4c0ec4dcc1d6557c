import { setImmediate } from 'node:timers/promises';

export type Turns = <T>(read: () => Promise<T>) => Promise<T>;

/**
 * Returns a function that runs reads one after the other. Many exports at once then cost the public listener, which may
 * have the same process and the same Redis, no more than one does. Lets other events happen before each read, because
 * the embedded store replies without waiting for any.
 */
export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return (read) => {
    const turn = last.then(() => setImmediate()).then(read);
    last = turn.catch(() => undefined);
    return turn;
  };
}
