/** Where the CPU time of a forwarded request goes, of one busy customer and of ten thousand in random order. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { treeCpuMicros } from '../cpu.ts';
import { createCustomers, writeCustomers, writeKeyFile } from '../customers.ts';
import { type Load, runLoad } from '../load.ts';
import { startTollgate } from '../peers.ts';
import { type CpuProfile, timeByPart } from '../profile.ts';
import { busyWrk, type Scenario, type Settings } from '../scenario.ts';
import type { Surroundings } from '../surroundings.ts';

const SAMPLING_MICROS = 250;
const CUSTOMERS = 10_000;
/** By then a gateway knows the customers and their rates. */
const WARM_UP_MS = 10_000;
/** For the gateway to drain, and to write its profile. */
const END_DEADLINE_MS = 30_000;

export const profileRequests: Scenario = async (surroundings, settings) => {
  const customers = createCustomers(CUSTOMERS);
  await writeCustomers(surroundings.redis.client, customers);
  const file = writeKeyFile(surroundings.workspace.folder, customers);
  const one = await profileLoad('one customer', undefined, surroundings, settings);
  const many = await profileLoad('ten thousand', { file, seed: 1 }, surroundings, settings);
  const cells = (part: string) => {
    const [micros, ofMany] = [one.micros(part), many.micros(part)];
    return [
      part,
      micros.toFixed(1),
      `${((100 * micros) / one.all).toFixed(0)} %`,
      ofMany.toFixed(1),
      (ofMany - micros).toFixed(1),
    ];
  };
  const parts = [...new Set([...one.parts, ...many.parts])];
  return {
    table: {
      head: ['part, µs/request', 'one customer', 'share', 'ten thousand', 'difference'],
      rows: [
        ...parts.sort((a, b) => one.micros(b) - one.micros(a)).map(cells),
        ['all', one.all.toFixed(1), '100 %', many.all.toFixed(1), (many.all - one.all).toFixed(1)],
      ],
    },
    remarks: [
      `${one.requests.toLocaleString('en')} and ${many.requests.toLocaleString('en')} requests, sampled every ${SAMPLING_MICROS} µs, which takes time of its own.`,
      'CPU time of the process, distributed by samples of the main thread; the time of helper threads (garbage collection, compilation) is spread over all parts.',
    ],
    problems: one.requests > 0 && many.requests > 0 ? [] : ['no request got a response'],
  };
};

/** Profiles a gateway of its own. `key`: left out, that of one customer. */
async function profileLoad(name: string, key: Load['key'], surroundings: Surroundings, settings: Settings) {
  const { folder } = surroundings.workspace;
  const file = `${name}.cpuprofile`;
  const tollgate = await startTollgate(surroundings, {
    nodeOptions: [
      ...['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-name=${file}`],
      `--cpu-prof-interval=${SAMPLING_MICROS}`,
    ],
  });
  const busy = await busyWrk(surroundings, tollgate);
  const load = { ...busy, key: key ?? busy.key };
  settings.say(`${name}: warming up`);
  await runLoad({ ...load, durationMs: WARM_UP_MS });

  settings.say(`${name}: measuring`);
  const { pid } = tollgate.process;
  const [cpuBefore, startMicros] = [treeCpuMicros(pid), monotonicMicros()];
  const { requests } = await runLoad({ ...load, durationMs: settings.rounds * settings.sliceMs });
  const [cpuAfter, endMicros] = [treeCpuMicros(pid), monotonicMicros()];
  process.kill(pid, 'SIGTERM');
  const times = timeByPart(await readProfile(join(folder, file)), startMicros, endMicros);
  const sampled = [...times.values()].reduce((sum, micros) => sum + micros, 0);
  const all = (cpuAfter - cpuBefore) / requests;
  return { requests, all, parts: times.keys(), micros: (part: string) => (all * (times.get(part) ?? 0)) / sampled };
}

/** As V8 stamps its samples. */
function monotonicMicros(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

async function readProfile(file: string): Promise<CpuProfile> {
  const deadlineMs = performance.now() + END_DEADLINE_MS;
  for (;;) {
    await setTimeout(200);
    const profile = existsSync(file) ? parseIfWhole(readFileSync(file, 'utf8')) : undefined;
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
