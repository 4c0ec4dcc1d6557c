/** What must not grow: memory, descriptors and handles of the gateway and its workers, and keys in Redis; all at rest. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';
import { readMemory } from '../../bench/memory.ts';
import { readCounter } from '../../bench/metrics.ts';
import { median } from '../../bench/statistics.ts';
import { vitalsFileName } from './vitals-file.ts';

export interface Vitals {
  /** Resident, what is shared counted in parts. */
  readonly memoryBytes: number;
  /** In use once garbage is collected. */
  readonly heapBytes: number;
  readonly descriptors: number;
  /** What keeps Node.js's event loop busy: sockets, timers, watches. */
  readonly handles: number;
  readonly redisKeys: number;
}

export const VITALS = ['memoryBytes', 'heapBytes', 'descriptors', 'handles', 'redisKeys'] as const;

/** So much more in one run is not growth, even if it is steady: caches fill, pools breathe. */
const TOLERANCE: Vitals = {
  memoryBytes: 16 * 2 ** 20,
  heapBytes: 4 * 2 ** 20,
  descriptors: 32,
  handles: 32,
  redisKeys: 64,
};
/** A rise that is as steady as this comes about by chance in one of 200 flat series. */
const SIGNIFICANT = 2.58;
/** With fewer, no rise is steady enough. */
const MIN_READINGS = 6;
const SETTLE_MS = 250;
const MAX_SETTLING_MS = 10_000;
const TELLS_WITHIN_MS = 10_000;
const POLL_MS = 20;

const TOLD = z.strictObject({ handles: z.number(), heapBytes: z.number() });

/** The gateway that is watched. */
export interface Patient {
  readonly pid: number;
  readonly opsOrigin: string;
  /** Where its processes write what they tell (tell-vitals.ts). */
  readonly vitalsFolder: string;
  readonly redisKeys: () => Promise<number>;
}

async function readVitals({ pid, vitalsFolder, redisKeys }: Patient): Promise<Vitals> {
  const pids = [pid, ...descendants(pid)];
  const told = await Promise.all(pids.map((each) => ask(each, vitalsFolder)));
  return {
    memoryBytes: sum(pids.map((each) => readMemory(each).pss)),
    heapBytes: sum(told.map(({ heapBytes }) => heapBytes)),
    descriptors: countDescriptors(pid),
    handles: sum(told.map(({ handles }) => handles)),
    redisKeys: await redisKeys(),
  };
}

async function ask(pid: number, folder: string): Promise<z.infer<typeof TOLD>> {
  const file = join(folder, vitalsFileName(pid));
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  const deadlineMs = performance.now() + TELLS_WITHIN_MS;
  while (!existsSync(file)) {
    if (performance.now() > deadlineMs) throw new Error(`process ${pid} of the gateway does not react`);
    await setTimeout(POLL_MS);
  }
  return TOLD.parse(JSON.parse(readFileSync(file, 'utf8')));
}

function countDescriptors(pid: number): number {
  return sum([pid, ...descendants(pid)].map((each) => readdirSync(`/proc/${each}/fd`).length));
}

function sum(values: readonly number[]): number {
  return values.reduce((so, each) => so + each, 0);
}

/** Once no request is in progress and the descriptors stay as they are. Call it without load. */
export async function readVitalsAtRest(patient: Patient): Promise<Vitals> {
  const deadlineMs = performance.now() + MAX_SETTLING_MS;
  for (let last = countDescriptors(patient.pid); ; ) {
    await setTimeout(SETTLE_MS);
    const now = countDescriptors(patient.pid);
    const inFlight = await readCounter(patient.opsOrigin, 'tollgate_inflight_requests');
    const isLate = performance.now() > deadlineMs;
    if (isLate && inFlight > 0) throw new Error(`${inFlight} requests do not end, although their clients are gone`);
    if (isLate || (inFlight === 0 && now === last)) return readVitals(patient);
    last = now;
  }
}

/** Pids of all processes below this one. */
export function descendants(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number);
  return children.flatMap((child) => [child, ...descendants(child)]);
}

/**
 * What has grown after the first third, which is for warming up: a rise that is steady (by the test of Mann and Kendall) and
 * steep (by the slope of Theil and Sen, the median of all slopes between two readings). Neither minds single outliers.
 * Undefined while there is none, and while there are too few readings to say.
 */
export function findGrowth(readings: readonly Vitals[], name: keyof Vitals): string | undefined {
  const values = readings.slice(Math.floor(readings.length / 3)).map((each) => each[name]);
  const n = values.length;
  if (n < MIN_READINGS) return undefined;
  const slopes = values.flatMap((before, i) => values.slice(i + 1).map((after, j) => (after - before) / (j + 1)));
  const rises = sum(slopes.map(Math.sign));
  const steadiness = (rises - 1) / Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18);
  const slope = median(slopes);
  if (steadiness < SIGNIFICANT || slope * (n - 1) <= TOLERANCE[name]) return undefined;
  return `${name} grew by ${slope.toFixed(1)} a round, from ${values[0]} to ${values.at(-1)}`;
}
