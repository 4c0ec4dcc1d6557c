import type { Command } from '@commander-js/extra-typings';
import type { StatusDocument } from '../api/admin/responses.ts';
import { printable } from '../api/client/printable.ts';
import { documentCommand } from './admin-commands.ts';
import { connect } from './connect.ts';
import { maintenanceInWords } from './maintenance.ts';
import { printJson, printSections } from './output.ts';
import { formatDocument, formatTable, shortTime } from './table.ts';

export function addStatusCommand(program: Command): void {
  documentCommand(
    program,
    'status',
    'show the version, configuration and connections of a gateway; exit status 1 if it is degraded',
  ).action(async (options) => {
    const client = await connect(options);
    const status = await client.call('GET /status');
    await (options.json ? printJson(status) : printSections(...sections(status)));
    if (status.problems.length === 0) return;
    const problems = status.problems.map(({ what, advice, detail }) => [what, advice, detail ?? ''].join(' ').trim());
    throw new Error(printable(`the gateway is degraded: ${problems.join(' ').replaceAll('\n', '; ')}`));
  });
}

function sections(status: StatusDocument): string[] {
  const { check, config, store, upstreams, workers, notices } = status;
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
    maintenance: maintenanceInWords(status.maintenance),
    instances: status.instances,
    ...(check && { 'check listener': `${check.address}, ${check.has_token ? 'with' : 'without'} a token` }),
    ...(notices && { 'notices not delivered': `${notices.pending} pending, ${notices.dead} dead` }),
  });
  const changes = reload?.result === 'applied' ? reload.changes : [];
  return [
    summary,
    formatTable(changes, { 'APPLIED BY THE LAST RELOAD': (change: string) => change }),
    formatTable(upstreams, {
      BACKEND: 'backend',
      UPSTREAM: 'url',
      'IN SERVICE': 'up',
      REASON: 'reason',
      'LAST FAULT': 'fault',
    }),
    formatTable(status.fleet ?? [], {
      INSTANCE: 'host',
      PID: 'pid',
      VERSION: 'version',
      STARTED: 'started_at',
      ANNOUNCED: 'announced_at',
      CONFIG: 'config_hash',
    }),
    formatTable(workers, {
      WORKER: 'id',
      PID: 'pid',
      READY: 'ready',
      STARTED: 'started_at',
      RESTARTS: 'restarts',
      CONFIG: 'config_hash',
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
