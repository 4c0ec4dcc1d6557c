import { readdir, stat } from 'node:fs/promises';
import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client';

/** Each of these visits every connection at each scrape, which takes milliseconds for ten thousand of them. */
const COSTLY = /^nodejs_active_(?:resources|handles|requests)/;
const OPEN_FDS = 'process_open_fds';
const FDS_FOLDER = '/proc/self/fd';

/**
 * Registers process, event-loop and garbage-collection metrics under prom-client's names, except those whose cost grows
 * with the number of connections.
 */
export function addProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
  for (const { name } of registry.getMetricsAsArray()) if (COSTLY.test(name)) registry.removeSingleMetric(name);
  if (registry.getSingleMetric(OPEN_FDS) === undefined) return;
  registry.removeSingleMetric(OPEN_FDS);
  const gauge: Gauge = new Gauge({
    name: OPEN_FDS,
    help: 'Number of open file descriptors.',
    registers: [registry],
    async collect() {
      gauge.set(await countOpenFiles());
    },
  });
}

async function countOpenFiles(): Promise<number> {
  try {
    // Linux 6.2 and newer give the number of descriptors as the size; older ones give 0.
    const { size } = await stat(FDS_FOLDER);
    return size > 0 ? size : (await readdir(FDS_FOLDER)).length - 1;
  } catch {
    return Number.NaN;
  }
}
