import { setTimeout } from 'node:timers/promises';

const PATIENCE_MS = 60_000;
const INTERVAL_MS = 50;

/** Waits until this holds; for hooks, where `expect.poll` is not to be had. What throws does not hold yet. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const outcome = await Promise.resolve()
      .then(holds)
      .catch((error: unknown) => error);
    if (outcome === true) return;
    if (performance.now() > until) throw new Error(`it never held that ${what}`, { cause: outcome });
    await setTimeout(INTERVAL_MS);
  }
}
