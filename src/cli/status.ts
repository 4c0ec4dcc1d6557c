import { STATUS, type StatusDocument } from '../admin-api/responses.ts';
import { printable } from '../admin-client/printable.ts';
import type { DocumentOptions } from './admin-options.ts';
import { connect } from './connect.ts';
import { print, printDocument } from './output.ts';
import { formatDocument, formatTable, shortTime, tableUnlessEmpty } from './table.ts';

/** Announcements are repeated every 10 s. An instance that misses three has ended, or has lost the store. */
const MAX_SILENCE_MS = 30_000;

/** Prints the gateway's status, then rejects if the gateway is degraded. */
export async function showStatus(options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  const status = await client.get(STATUS, '/status');
  await (options.json ? printDocument(status, options) : print(sections(status).join('\n')));
  const faults = faultsOf(status);
  if (faults.length > 0) throw new Error(printable(`the gateway is degraded: ${faults.join('; ')}`));
}

/** Returns what needs an operator now, or will at the next restart. Empty if the gateway is healthy. */
export function faultsOf(status: StatusDocument): string[] {
  const { config, store, invalidation, upstreams, workers } = status;
  const { last_reload: reload } = config;
  const isRefused = reload !== null && reload.result !== 'applied' && reload.result !== 'unchanged';
  return [
    ...(store.up ? [] : [`the store is unreachable${store.last_error === null ? '' : ` (${store.last_error})`}`]),
    ...(store.wiped ? ['the store has lost its data'] : []),
    ...(store.empty ? ['the store has no record, so unknown keys get 503'] : []),
    ...(store.evicted ? ['the store has evicted keys'] : []),
    ...(store.refusing ? ['the store refuses quota writes'] : []),
    ...(store.up && !invalidation.connected ? ['changes to keys and customers are not pushed'] : []),
    ...upstreams.filter(({ up }) => !up).map(({ url, reason }) => `upstream ${url} is out of service (${reason})`),
    ...workers.filter(({ ready }) => !ready).map(({ id }) => `worker ${id} is not ready`),
    ...instancesOfOtherConfigs(status).map(({ host, pid, config_hash: hash }) => {
      return `the instance ${host} (pid ${pid}) runs another configuration (${hash})`;
    }),
    ...(isRefused
      ? [`the configuration file was refused (${reload.result}): ${reload.error?.replaceAll('\n', '; ')}`]
      : []),
  ];
}

/** Instances that announce themselves now, and run another configuration than this gateway. */
function instancesOfOtherConfigs({ config, fleet }: StatusDocument) {
  const times = (fleet ?? []).map(({ announced_at: at }) => Date.parse(at));
  const sinceMs = Math.max(...times) - MAX_SILENCE_MS;
  return (fleet ?? []).filter(
    ({ announced_at: at, config_hash: hash }) => Date.parse(at) >= sinceMs && hash !== null && hash !== config.hash,
  );
}

function sections(status: StatusDocument): string[] {
  const { config, store, upstreams, workers, notices } = status;
  const reload = config.last_reload;
  const summary = formatDocument({
    version: status.version,
    started: shortTime(status.started_at),
    uptime: inWords(status.uptime_seconds),
    'config file': config.file,
    'config hash': config.hash,
    'config loaded': shortTime(config.loaded_at),
    'last reload': reload === null ? 'none since the start' : `${reload.result} at ${shortTime(reload.at)}`,
    store: `${store.kind}, ${store.up ? 'reachable' : 'unreachable'}`,
    'changes pushed': status.invalidation.connected,
    instances: status.instances,
    ...(notices && { 'notices not delivered': `${notices.pending} pending, ${notices.dead} dead` }),
  });
  const changes = reload?.result === 'applied' ? reload.changes : [];
  return [
    summary,
    ...tableUnlessEmpty(changes, { 'APPLIED BY THE LAST RELOAD': (change) => change }),
    formatTable(upstreams, {
      UPSTREAM: ({ url }) => url,
      'IN SERVICE': ({ up }) => up,
      REASON: ({ reason }) => reason,
      'LAST FAULT': ({ fault }) => fault,
    }),
    ...tableUnlessEmpty(status.fleet ?? [], {
      INSTANCE: ({ host }) => host,
      PID: ({ pid }) => pid,
      VERSION: ({ version }) => version,
      STARTED: ({ started_at: at }) => at && shortTime(at),
      ANNOUNCED: ({ announced_at: at }) => shortTime(at),
      CONFIG: ({ config_hash: hash }) => hash,
    }),
    ...tableUnlessEmpty(workers, {
      WORKER: ({ id }) => id,
      PID: ({ pid }) => pid,
      READY: ({ ready }) => ready,
      STARTED: ({ started_at: at }) => shortTime(at),
      RESTARTS: ({ restarts }) => restarts,
      CONFIG: ({ config_hash: hash }) => hash,
    }),
  ];
}

/** Formats a duration in its two largest units. */
function inWords(seconds: number): string {
  const units = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const first = units.findIndex(([count]) => count > 0);
  const shown = first === -1 ? units.slice(-1) : units.slice(first, first + 2);
  return shown.map(([count, unit]) => `${count} ${unit}`).join(' ');
}
