/**
 * Counts how many more requests than its limit a gateway lets through to its backend.
 *
 * Without options: the gateways of the benchmark, with an hour that passes by a clock that is set ahead (clock.c). With
 * --peer NAME: these gateways alone.
 * With --gateway: any gateway, whose window passes in real time. Let it forward to --backend-port of this machine.
 */

import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { findPrograms } from '../../bench/programs.ts';
import { exitOnSignals } from '../../bench/workspace.ts';
import { attack, BEGIN_LATE_MS, type Finding } from './attacks.ts';
import { startCountingBackend } from './counting-backend.ts';
import { attackPeer, SUBJECTS } from './peers.ts';

const { values: options } = parseArgs({
  options: {
    peer: { type: 'string', multiple: true },
    gateway: { type: 'string', multiple: true, default: [] },
    'backend-port': { type: 'string', default: '3000' },
    path: { type: 'string', default: '/api/v1/conversations' },
    header: { type: 'string', multiple: true, default: [] },
    limit: { type: 'string', default: '100' },
    'window-seconds': { type: 'string', default: '60' },
  },
});
const limit = Number(options.limit);
exitOnSignals();
const results = options.gateway.length > 0 ? [await attackByUrl()] : await attackPeers();
console.log(table(results));

interface Result {
  readonly name: string;
  readonly findings: readonly Finding[];
}

async function attackByUrl(): Promise<Result> {
  await using backend = await startCountingBackend(Number(options['backend-port']), Date.now);
  const headers = Object.fromEntries(options.header.map((line) => line.split(/:\s*/, 2)));
  const windowMs = 1000 * Number(options['window-seconds']);
  const findings = await attack({
    origins: options.gateway,
    path: options.path,
    async headers() {
      // The same customer attacks again once its window is empty.
      if (backend.arrivals.length > 0) await setTimeout(2 * windowMs);
      return headers;
    },
    limit,
    windowMs,
    backend,
    pass: (ms) => setTimeout(ms),
    faults: [],
    beginLateMs: BEGIN_LATE_MS,
  });
  return { name: options.gateway.join(', '), findings };
}

async function attackPeers(): Promise<Result[]> {
  const programs = findPrograms(process.env);
  const found: Result[] = [];
  for (const subject of SUBJECTS.filter(({ peer }) => options.peer?.includes(peer) ?? true)) {
    console.error(`attacking: ${subject.name}`);
    try {
      found.push({ name: subject.name, findings: await attackPeer(subject, programs, limit) });
    } catch (error) {
      console.error(`${subject.name} is left out: ${error instanceof Error ? error.message : error}`);
    }
  }
  return found;
}

/** Each cell: how many requests above the limit reached the backend in the fullest window. */
function table(rows: readonly Result[]): string {
  const attacks = rows[0]?.findings.map((finding) => finding.attack) ?? [];
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    line(['attack', ...rows.map(({ name }) => name)]),
    line(['---', ...rows.map(() => '---')]),
    ...attacks.map((name, i) => line([name, ...rows.map(({ findings }) => overshoot(findings[i]))])),
  ].join('\n');
}

function overshoot(finding: Finding | undefined): string {
  if (finding === undefined) return '–';
  const excess = Math.max(0, finding.most - limit);
  return excess === 0 ? '0' : `+${excess} (${Math.round((100 * excess) / limit)} %)`;
}
