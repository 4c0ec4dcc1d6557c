/** Whether memory stays bounded: many requests of many customers, and the resident size along the way. */
import { createCustomers, writeCustomers, writeKeyFile } from '../customers.ts';
import { runLoad } from '../load.ts';
import { formatMebibytes, readMemory } from '../memory.ts';
import { describeCounter } from '../metrics.ts';
import { startTollgate } from '../peers.ts';
import { BUSY_CONNECTIONS, type Scenario, wrkCommand } from '../scenario.ts';
import { slope } from '../statistics.ts';
import { LIST_PATH } from '../surroundings.ts';

const CUSTOMERS = 100_000;
const LISTED_SAMPLES = 10;
/**
 * So many may be refused: where the machine is busy with something else for longer than the store's timeout, a customer
 * that is not in memory yet gets 503.
 */
const REFUSED_SHARE = 0.001;
/** The growth over the last half that still counts as flat. */
const FLAT_SHARE = 0.05;

export interface Sample {
  /** Answered so far. */
  readonly requests: number;
  readonly rss: number;
}

export const watchMemory: Scenario = async (surroundings, settings) => {
  const { redis, workspace } = surroundings;
  const tollgate = await startTollgate(surroundings);
  const customers = createCustomers(CUSTOMERS);
  await writeCustomers(redis.client, customers);
  const file = writeKeyFile(workspace.folder, customers);
  const wrk = wrkCommand(surroundings);
  const { pid } = tollgate.process;

  const samples: Sample[] = [{ requests: 0, rss: readMemory(pid).rss }];
  let refused = 0;
  for (let requests = 0; requests < settings.requests; ) {
    const load = await runLoad({
      wrk,
      url: `${tollgate.origin}${LIST_PATH}`,
      connections: BUSY_CONNECTIONS,
      durationMs: settings.sliceMs,
      key: { file, seed: samples.length },
    });
    requests += load.requests;
    refused += load.refused;
    samples.push({ requests, rss: readMemory(pid).rss });
    settings.say(`${requests} requests: ${formatMebibytes(readMemory(pid).rss)} MiB, ${load.refused} refused`);
    if (load.requests === 0) throw new Error('the gateway no longer responds');
  }
  const completed = samples.at(-1)?.requests ?? 0;
  const statuses = await describeCounter(tollgate.opsOrigin, 'tollgate_http_requests_total', 'code');
  const refusals = `${refused.toLocaleString('en')} requests were refused; the statuses: ${statuses}.`;
  return {
    table: {
      head: ['requests', 'RSS MiB'],
      rows: spaced(samples, LISTED_SAMPLES + 1).map(({ requests, rss }) => [
        requests.toLocaleString('en'),
        formatMebibytes(rss),
      ]),
    },
    remarks: [
      `${CUSTOMERS.toLocaleString('en')} customers in random order.`,
      describeGrowth(samples),
      ...(refused > 0 ? [refusals] : []),
    ],
    problems: refused <= REFUSED_SHARE * completed ? [] : [refusals],
  };
};

/** The trend of the last half in a sentence, with the verdict. */
export function describeGrowth(samples: readonly Sample[]): string {
  const total = samples.at(-1)?.requests ?? 0;
  const half = samples.filter(({ requests }) => requests >= total / 2);
  const bytesPerRequest = slope(half.map(({ requests, rss }) => ({ x: requests, y: rss })));
  const share = (bytesPerRequest * total) / 2 / (half[0]?.rss ?? Number.NaN);
  const verdict = Math.abs(share) <= FLAT_SHARE ? 'flat' : 'not flat';
  return `Over the last half ${bytesPerRequest.toFixed(1)} bytes a request, ${(share * 100).toFixed(1)} % in all: ${verdict}.`;
}

/** So many of the items, at even distances, the first and the last among them. */
export function spaced<T>(items: readonly T[], count: number): T[] {
  if (items.length <= count) return [...items];
  const step = (items.length - 1) / (count - 1);
  return Array.from({ length: count }, (_, i) => items[Math.round(i * step)]).filter((item) => item !== undefined);
}
