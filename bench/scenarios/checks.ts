/** A check for another proxy, against a forwarded request, and against nginx that decides by itself with Lua and Redis. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../free-port.ts';
import { startLuaNginx, startTollgate } from '../peers.ts';
import { medianOf, type Rounds, runRounds } from '../rounds.ts';
import {
  BUSY_CONNECTIONS,
  busyLoad,
  costCells,
  describeRounds,
  jobFor,
  roundsSettings,
  type Scenario,
} from '../scenario.ts';
import type { Expected } from '../slice.ts';
import { LIST_PATH } from '../surroundings.ts';

const TARGET_RATIO = 0.5;
const FORWARDED = 'forwarded';
const HEAD = ['request', 'CPU µs/request', 'of Redis', 'ratio to forwarded', 'requests/s', 'p99 ms'];
const YES: Expected = {
  status: 200,
  fault: (body) => (body.length === 0 ? undefined : 'it has a body'),
};

export const compareChecks: Scenario = async (surroundings, settings) => {
  const checkPort = await freePort();
  const usual = readFileSync(new URL('../../config/gateway.yaml', import.meta.url), 'utf8');
  const config = join(surroundings.workspace.folder, 'checks.yaml');
  writeFileSync(config, `${usual}\ncheck: { port: ${checkPort}, trusted_proxies: [127.0.0.1] }\n`);
  const tollgate = await startTollgate(surroundings, { config });
  const control = await startTollgate(surroundings);
  const load = await busyLoad(surroundings);
  const checking = { ...tollgate, origin: `http://127.0.0.1:${checkPort}` };
  const jobs = [
    jobFor(tollgate, { ...load, name: FORWARDED }),
    jobFor(control, { ...load, name: `${FORWARDED}, again` }),
    jobFor(checking, { ...load, name: 'check', path: `/ext-authz${LIST_PATH}`, expected: YES }),
  ];
  const hasLua = surroundings.programs.luaModules !== undefined;
  if (hasLua) {
    const nginx = await startLuaNginx(surroundings, 'content_by_lua_block { ngx.exit(200) }');
    jobs.push(jobFor(nginx, { ...load, name: 'nginx and Lua decide', expected: YES }));
  }
  const rounds = await runRounds(jobs, roundsSettings(surroundings, settings));
  return {
    table: { head: HEAD, rows: jobs.map(({ name }) => row(rounds, name)) },
    remarks: [
      `${describeRounds(settings)} Connections: ${BUSY_CONNECTIONS}.`,
      `The target is a ratio of at most ${TARGET_RATIO} for a check. Neither the check nor the nginx here forwards anything.`,
      ...(hasLua ? [] : ['nginx is left out: its Lua module is missing (Debian: libnginx-mod-http-lua)']),
    ],
    problems: rounds.problems,
  };
};

function row(rounds: Rounds, name: string): string[] {
  return [
    ...costCells(rounds, name, FORWARDED),
    medianOf(rounds, name, ({ requestsPerSecond }) => requestsPerSecond).toFixed(0),
    (medianOf(rounds, name, ({ p99 }) => p99) / 1000).toFixed(2),
  ];
}
