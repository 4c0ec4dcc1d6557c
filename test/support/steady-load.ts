/** Callers that never stop while something fails, and what they were answered. */
import { setTimeout } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { bearer } from './admin.ts';
import { awakeMs } from './awake-clock.ts';

export interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  /** By {@link awakeMs}. */
  readonly tookMs: number;
}

export interface SteadyLoad {
  readonly answers: readonly Answer[];
  /** Resolves when as many more answers have come. */
  more(count: number): Promise<void>;
  /** Resolves when the last answer is there. */
  stop(): Promise<readonly Answer[]>;
}

const PAUSE_MS = 5;

export async function ask(origin: string, key: string): Promise<Answer> {
  const startedMs = awakeMs();
  const answer = await fetch(`${origin}/v1/conversations`, { headers: bearer(key) });
  const { code } = (await answer.json()) as { code?: string };
  return { status: answer.status, code, tookMs: awakeMs() - startedMs };
}

/** One caller at each gateway; the key for each request is the next. Stopped when the test ends. */
export function startLoad(origins: readonly string[], nextKey: () => string): SteadyLoad {
  const answers: Answer[] = [];
  let stopped = false;
  const caller = async (origin: string) => {
    while (!stopped) {
      answers.push(await ask(origin, nextKey()));
      await setTimeout(PAUSE_MS);
    }
  };
  const done = Promise.all(origins.map(caller));
  // Who waits for the end hears of a failure.
  done.catch(() => undefined);
  const stop = async () => {
    stopped = true;
    await done;
    return answers;
  };
  onTestFinished(async () => void (await stop()));
  return {
    answers,
    async more(count) {
      const wanted = answers.length + count;
      while (answers.length < wanted && !stopped) await Promise.race([setTimeout(10), done]);
    },
    stop,
  };
}
