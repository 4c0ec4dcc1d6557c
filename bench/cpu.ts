/** CPU time of processes, as Linux's /proc tells it. */
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessStat {
  readonly parentPid: number;
  /** User and system time of all its threads, in clock ticks. */
  readonly cpuTicks: number;
}

/** USER_HZ, the unit of times in /proc: 100 on every architecture that Node.js runs on. */
const TICKS_PER_SECOND = 100;
const MICROS_PER_TICK = 1_000_000 / TICKS_PER_SECOND;

/** Parses /proc/PID/stat (proc_pid_stat(5)). @throws Error when it is something else. */
export function parseStat(text: string): ProcessStat {
  // The second field is the program's name in parentheses, and may hold spaces and parentheses of its own.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [parentPid, userTicks, systemTicks] = [fields[1], fields[11], fields[12]].map(Number);
  if (parentPid === undefined || userTicks === undefined || systemTicks === undefined || Number.isNaN(systemTicks)) {
    throw new Error(`not a line of /proc/PID/stat: ${text}`);
  }
  return { parentPid, cpuTicks: userTicks + systemTicks };
}

/** CPU time so far of a process and all its descendants, in µs; exact to 10 ms. */
export function treeCpuMicros(rootPid: number): number {
  const stats = readAllStats();
  const ticksOf = (pid: number): number => {
    const children = [...stats].filter(([, { parentPid }]) => parentPid === pid);
    return (stats.get(pid)?.cpuTicks ?? 0) + children.reduce((sum, [child]) => sum + ticksOf(child), 0);
  };
  return ticksOf(rootPid) * MICROS_PER_TICK;
}

function readAllStats(): Map<number, ProcessStat> {
  const stats = new Map<number, ProcessStat>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const text = readIfThere(`/proc/${name}/stat`);
    if (text !== undefined) stats.set(Number(name), parseStat(text));
  }
  return stats;
}

/** Undefined for a process that ended in between. */
function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
