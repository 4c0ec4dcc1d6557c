/** Where the CPU time of a forwarded request goes. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { treeCpuMicros } from '../cpu.ts';
import { runLoad } from '../load.ts';
import { startTollgate } from '../peers.ts';
import { type CpuProfile, timeByPart } from '../profile.ts';
import { busyWrk, type Scenario } from '../scenario.ts';

const SAMPLING_MICROS = 250;
/** For the gateway to drain, and to write its profile. */
const END_DEADLINE_MS = 30_000;

export const profileRequests: Scenario = async (surroundings, settings) => {
  const { folder } = surroundings.workspace;
  const tollgate = await startTollgate(surroundings, {
    nodeOptions: [
      ...['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-name=gateway.cpuprofile'],
      `--cpu-prof-interval=${SAMPLING_MICROS}`,
    ],
  });
  const load = await busyWrk(surroundings, tollgate);
  settings.say('warming up');
  await runLoad({ ...load, durationMs: settings.sliceMs });

  settings.say('measuring');
  const { pid } = tollgate.process;
  const [cpuBefore, startMicros] = [treeCpuMicros(pid), monotonicMicros()];
  const { requests } = await runLoad({ ...load, durationMs: settings.rounds * settings.sliceMs });
  const [cpuAfter, endMicros] = [treeCpuMicros(pid), monotonicMicros()];
  process.kill(pid, 'SIGTERM');
  const profile = await readProfile(folder);

  const times = [...timeByPart(profile, startMicros, endMicros)].sort(([, a], [, b]) => b - a);
  const sampled = times.reduce((sum, [, micros]) => sum + micros, 0);
  const microsPerRequest = (cpuAfter - cpuBefore) / requests;
  const row = (part: string, share: number) => [
    part,
    (share * microsPerRequest).toFixed(1),
    `${(100 * share).toFixed(0)} %`,
  ];
  return {
    table: {
      head: ['part', 'µs/request', 'share'],
      rows: [...times.map(([part, micros]) => row(part, micros / sampled)), row('all', 1)],
    },
    remarks: [
      `${requests.toLocaleString('en')} requests, sampled every ${SAMPLING_MICROS} µs, which takes time of its own.`,
      'CPU time of the process, distributed by samples of the main thread; the time of helper threads (garbage collection, compilation) is spread over all parts.',
    ],
    problems: requests > 0 ? [] : ['no request got a response'],
  };
};

/** As V8 stamps its samples. */
function monotonicMicros(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

async function readProfile(folder: string): Promise<CpuProfile> {
  const deadlineMs = performance.now() + END_DEADLINE_MS;
  for (;;) {
    await setTimeout(200);
    const file = readdirSync(folder).find((name) => name.endsWith('.cpuprofile'));
    const profile = file === undefined ? undefined : parseIfWhole(readFileSync(join(folder, file), 'utf8'));
    if (profile) return profile;
    if (performance.now() > deadlineMs) throw new Error('the gateway left no profile');
  }
}

function parseIfWhole(text: string): CpuProfile | undefined {
  try {
    return JSON.parse(text) as CpuProfile;
  } catch {
    return undefined;
  }
}
