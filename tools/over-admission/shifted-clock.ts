/** A clock for processes that this tool starts, which it can set ahead: see clock.c. Needs a C compiler, on Linux. */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('clock.c', import.meta.url));

export interface ShiftedClock {
  /** What a process needs in its environment to go by this clock. */
  readonly env: Readonly<Record<string, string>>;
  /** Wall time in ms. */
  nowMs(): number;
  ahead(ms: number): void;
}

/** @throws Error when the library cannot be built. */
export function createShiftedClock(folder: string): ShiftedClock {
  const library = join(folder, 'clock.so');
  const { status, error, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE, '-ldl'], {
    encoding: 'utf8',
  });
  if (status !== 0) {
    throw new Error(`The clock needs a C compiler (Debian: gcc and libc6-dev): ${error?.message ?? stderr}`);
  }
  const name = join(folder, 'clock');
  const file = openSync(name, 'w');
  let offsetMs = 0;
  const write = () => {
    const nanos = Buffer.alloc(8);
    nanos.writeBigInt64LE(BigInt(Math.round(offsetMs)) * 1_000_000n);
    writeSync(file, nanos, 0, nanos.length, 0);
  };
  write();
  process.once('exit', () => closeSync(file));
  return {
    env: { LD_PRELOAD: library, OVER_ADMISSION_CLOCK: name },
    nowMs: () => Date.now() + offsetMs,
    ahead(ms) {
      offsetMs += ms;
      write();
    },
  };
}
