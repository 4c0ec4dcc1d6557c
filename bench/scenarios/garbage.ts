/** What a forwarded request leaves to the garbage collector, and which code allocates it. */
import { freePort } from '../free-port.ts';
import { connectInspector, type Inspector } from '../inspector.ts';
import { runLoad } from '../load.ts';
import { startTollgate } from '../peers.ts';
import { type AllocationProfile, allocationsByPart } from '../profile.ts';
import { busyWrk, type Scenario } from '../scenario.ts';

/** Bytes between two samples, on average. */
const SAMPLING_BYTES = 1024;
/** Functions below this share of all bytes have no row of their own. */
const MIN_SHARE = 0.01;

/** Counts collections from now on. A Scavenge is one of the young generation. */
const COUNT_COLLECTIONS = `{
  const { PerformanceObserver } = process.getBuiltinModule('node:perf_hooks');
  globalThis.collections = { young: 0, other: 0, ms: 0 };
  new PerformanceObserver((list) => {
    for (const { detail, duration } of list.getEntries()) {
      globalThis.collections[detail.kind === 1 ? 'young' : 'other']++;
      globalThis.collections.ms += duration;
    }
  }).observe({ entryTypes: ['gc'] });
}`;
const READ_COUNTS = `({
  bytes: process.getBuiltinModule('node:v8').getHeapStatistics().total_allocated_bytes,
  ...globalThis.collections,
})`;

interface Counts {
  /** Allocated on the heap since the start of the process. */
  readonly bytes: number;
  readonly young: number;
  readonly other: number;
  readonly ms: number;
}

export const measureGarbage: Scenario = async (surroundings, settings) => {
  const port = await freePort();
  const tollgate = await startTollgate(surroundings, { nodeOptions: [`--inspect=127.0.0.1:${port}`] });
  const load = { ...(await busyWrk(surroundings, tollgate)), durationMs: settings.rounds * settings.sliceMs };
  using inspector = await connectInspector(port);
  settings.say('warming up');
  await runLoad(load);
  settings.say('counting bytes and collections');
  await inspector.evaluate(COUNT_COLLECTIONS);
  const before = await readCounts(inspector);
  const { requests } = await runLoad(load);
  const after = await readCounts(inspector);
  settings.say('sampling allocations');
  await inspector.call('HeapProfiler.startSampling', {
    samplingInterval: SAMPLING_BYTES,
    includeObjectsCollectedByMinorGC: true,
    includeObjectsCollectedByMajorGC: true,
  });
  await runLoad(load);
  const { profile } = (await inspector.call('HeapProfiler.stopSampling')) as { profile: AllocationProfile };

  const bytesPerRequest = (after.bytes - before.bytes) / requests;
  const parts = allocationsByPart(profile);
  const sampled = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const row = (name: string, bytes: number) => [
    name,
    ((bytes / sampled) * bytesPerRequest).toFixed(0),
    `${((100 * bytes) / sampled).toFixed(1)} %`,
  ];
  const rows = parts.flatMap(({ part, bytes, sites }) => [
    row(`**${part}**`, bytes),
    ...sites.filter((site) => site.bytes >= MIN_SHARE * sampled).map((site) => row(site.name, site.bytes)),
  ]);
  const per10000 = (count: number) => ((10_000 * count) / requests).toFixed(1);
  return {
    table: { head: ['part, function', 'bytes/request', 'share'], rows: [...rows, row('**all**', sampled)] },
    remarks: [
      `${requests.toLocaleString('en')} requests. Collections for 10,000 requests: ${per10000(after.young - before.young)} of the young generation, ${per10000(after.other - before.other)} others, ${per10000(after.ms - before.ms)} ms.`,
      `All bytes by V8's own count; their distribution by a sample every ${SAMPLING_BYTES} bytes. Functions below ${100 * MIN_SHARE} % have no row.`,
    ],
    problems: requests > 0 ? [] : ['no request got a response'],
  };
};

async function readCounts(inspector: Inspector): Promise<Counts> {
  return (await inspector.evaluate(READ_COUNTS)) as Counts;
}
