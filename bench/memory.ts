/** Memory of processes, as Linux's /proc tells it. */
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

export interface MemoryUse {
  /** Resident, in bytes. */
  readonly rss: number;
  /** The same with what is shared counted in parts, in bytes. */
  readonly pss: number;
}

const SETTLED_SHARE = 0.01;
const SETTLED_MS = 5_000;
const MAX_SETTLING_MS = 30_000;

export function readMemory(pid: number): MemoryUse {
  return parseSmapsRollup(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
}

/** Parses /proc/PID/smaps_rollup (proc_pid_smaps_rollup(5)). @throws Error when it is something else. */
export function parseSmapsRollup(text: string): MemoryUse {
  const bytesOf = (name: string) => {
    const [, kibibytes] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text) ?? [];
    if (kibibytes === undefined) throw new Error(`/proc/PID/smaps_rollup does not say ${name}`);
    return Number(kibibytes) * 1024;
  };
  return { rss: bytesOf('Rss'), pss: bytesOf('Pss') };
}

/** The memory of an idle process once it stays as it is, or half a minute later: garbage is collected at leisure. */
export async function readSettledMemory(pid: number): Promise<MemoryUse> {
  const deadlineMs = performance.now() + MAX_SETTLING_MS;
  let last = readMemory(pid);
  while (performance.now() < deadlineMs) {
    await setTimeout(SETTLED_MS);
    const now = readMemory(pid);
    const isSettled = Math.abs(now.rss - last.rss) < last.rss * SETTLED_SHARE;
    last = now;
    if (isSettled) break;
  }
  return last;
}

export function formatMebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
