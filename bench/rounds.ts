/** Rounds of slices. What changes on the machine while they run changes for all: compared is round by round. */
import { type Job, runSlice, type Slice, type SliceFault, type SliceSettings } from './slice.ts';
import { median, quantile } from './statistics.ts';

export interface RoundsSettings extends Omit<SliceSettings, 'seed'> {
  readonly rounds: number;
  /** Gets a line of progress a round. */
  readonly say: (line: string) => void;
}

export interface Rounds {
  /** By job: its slice of each round; undefined where it was not measured rightly. */
  readonly slices: ReadonlyMap<string, readonly (Slice | undefined)[]>;
  readonly problems: readonly string[];
}

/** Takes the jobs in turn, `rounds` times, after one round that does not count and warms them up. */
export async function runRounds(jobs: readonly Job[], settings: RoundsSettings): Promise<Rounds> {
  return takeTurns(jobs, settings, (job, round) => runSlice(job, { ...settings, seed: round + 1 }));
}

/** The same with slices that `run` knows to measure. */
export async function takeTurns<J extends Pick<Job, 'name'>>(
  jobs: readonly J[],
  settings: Pick<RoundsSettings, 'rounds' | 'say'>,
  run: (job: J, round: number) => Promise<Slice | SliceFault>,
): Promise<Rounds> {
  const slices = new Map<string, (Slice | undefined)[]>(jobs.map(({ name }) => [name, []]));
  const problems: string[] = [];
  for (let round = 0; round <= settings.rounds; round += 1) {
    const label = round === 0 ? 'warm-up' : `round ${round}/${settings.rounds}`;
    const progress: string[] = [];
    for (const job of inOrderOf(jobs, round)) {
      const slice = await run(job, round);
      const isFault = 'fault' in slice;
      if (isFault) problems.push(`${job.name}, ${label}: ${slice.fault}`);
      progress.push(`${job.name} ${isFault ? 'FAILED' : (slice.gatewayMicros + slice.redisMicros).toFixed(1)}`);
      if (round > 0) slices.get(job.name)?.push(isFault ? undefined : slice);
    }
    settings.say(`${label}: ${progress.join(', ')}`);
  }
  return { slices, problems };
}

/**
 * The same items in the order of a turn. Over so many turns as there are items (of an odd number twice as many), each
 * follows each other one equally often: a Williams design. What one gateway leaves behind, such as garbage to collect, must
 * not always meet the same other one.
 */
export function inOrderOf<T>(items: readonly T[], turn: number): T[] {
  const { length } = items;
  // 0, 1, the last, 2, the last but one, …
  const places = items.map((_, i) => (i % 2 === 1 ? (i + 1) / 2 : length - i / 2));
  const order = places.map((place) => items[(place + turn) % length]).filter((item) => item !== undefined);
  return length % 2 === 1 && Math.floor(turn / length) % 2 === 1 ? order.toReversed() : order;
}

/** The median of what `of` says of a job's slices. */
export function medianOf({ slices }: Rounds, name: string, of: (slice: Slice) => number): number {
  return median((slices.get(name) ?? []).filter((slice) => slice !== undefined).map(of));
}

export interface Spread {
  readonly median: number;
  readonly lower: number;
  readonly upper: number;
}

/** What `combine` makes of the slices of two jobs in the same round: median and quartiles over the rounds. */
export function pairwise(
  { slices }: Rounds,
  [name, otherName]: readonly [string, string],
  combine: (slice: Slice, other: Slice) => number,
): Spread {
  const others = slices.get(otherName) ?? [];
  const values = (slices.get(name) ?? []).flatMap((slice, round) => {
    const other = others[round];
    return slice && other ? [combine(slice, other)] : [];
  });
  return { median: median(values), lower: quantile(values, 0.25), upper: quantile(values, 0.75) };
}

/** CPU time of the gateway and of Redis for one request, in µs. */
export function totalMicros({ gatewayMicros, redisMicros }: Slice): number {
  return gatewayMicros + redisMicros;
}
