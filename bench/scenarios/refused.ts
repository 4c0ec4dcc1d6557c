/** Floods of what is refused: a refusal must be cheaper than what it saves. */
import { setTimeout } from 'node:timers/promises';
import { createCustomer, writeCustomers } from '../customers.ts';
import { startTollgate } from '../peers.ts';
import { probe } from '../probe.ts';
import { medianOf, type Rounds, runRounds } from '../rounds.ts';
import { BUSY_CONNECTIONS, costCells, describeRounds, jobFor, roundsSettings, type Scenario } from '../scenario.ts';
import { type Expected, expectBody } from '../slice.ts';
import { LIST_PATH } from '../surroundings.ts';

const TARGET_RATIO = 0.5;
/** More than two windows of `auth.failures_per_minute` in the configuration take. */
const MAX_ATTEMPTS = 1000;
/** For the probes around a slice, and to start its load. */
const MARGIN_SECONDS = 3;
const FORWARDED = '200 forwarded';
const HEAD = ['request', 'CPU µs/request', 'of Redis', 'ratio to forwarded', 'requests/s'];

export const floodWithRefused: Scenario = async (surroundings, settings) => {
  const { upstream, redis } = surroundings;
  const tollgate = await startTollgate(surroundings);
  const control = await startTollgate(surroundings);
  const served = createCustomer('served');
  const usedUp = createCustomer('used-up', 1);
  const unknown = createCustomer('unknown');
  await writeCustomers(redis.client, [served, usedUp]);
  const { body } = await probe(`${upstream.origin}${LIST_PATH}`, undefined);
  await probe(`${tollgate.origin}${LIST_PATH}`, usedUp.key);
  const load = { path: LIST_PATH, connections: BUSY_CONNECTIONS };
  const forwarded = { ...load, key: served.key, expected: expectBody(body) };
  const jobs = [
    jobFor(tollgate, { ...forwarded, name: FORWARDED }),
    jobFor(control, { ...forwarded, name: `${FORWARDED}, again` }),
    jobFor(tollgate, {
      ...load,
      name: '429 unknown key',
      key: unknown.key,
      prepare: (durationMs) => failTooOften(`${tollgate.origin}${LIST_PATH}`, unknown.key, durationMs),
      expected: refusal(429, 'too_many_failures'),
    }),
    jobFor(tollgate, { ...load, name: '401 missing key', key: undefined, expected: refusal(401, 'missing_key') }),
    jobFor(tollgate, { ...load, name: '429 quota used up', key: usedUp.key, expected: refusal(429, 'quota_exceeded') }),
  ];
  const rounds = await runRounds(jobs, roundsSettings(surroundings, settings));
  return {
    table: { head: HEAD, rows: jobs.map(({ name }) => row(rounds, name)) },
    remarks: [
      `${describeRounds(settings)} Connections: ${BUSY_CONNECTIONS}.`,
      `The target is a ratio of at most ${TARGET_RATIO}.`,
    ],
    problems: rounds.problems,
  };
};

/** Fails until the gateway refuses, for longer than a slice, to look at more keys. */
async function failTooOften(url: string, unknownKey: string, sliceMs: number): Promise<void> {
  const neededSeconds = Math.ceil(sliceMs / 1000) + MARGIN_SECONDS;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const response = await fetch(url, { headers: { authorization: `Bearer ${unknownKey}` } });
    await response.text();
    if (response.status !== 429) continue;
    const retryAfterSeconds = Number(response.headers.get('retry-after'));
    if (retryAfterSeconds >= neededSeconds) return;
    await setTimeout(1000 * retryAfterSeconds);
  }
  throw new Error('the gateway does not refuse to look at more unknown keys');
}

/** Expects a problem document of the gateway. */
function refusal(status: number, code: string): Expected {
  return {
    status,
    fault: (body) => (body.includes(`"code":"${code}"`) ? undefined : `its problem is not ${code}`),
  };
}

function row(rounds: Rounds, name: string): string[] {
  return [
    ...costCells(rounds, name, FORWARDED),
    medianOf(rounds, name, ({ requestsPerSecond }) => requestsPerSecond).toFixed(0),
  ];
}
