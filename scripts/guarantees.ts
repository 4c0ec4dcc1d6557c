/**
 * What Tollgate promises, what bounds it, and the tests that show it: the source of the tables in docs/guarantees.md and
 * docs/dev/evidence.md. How often each test ran is in docs/dev/evidence.json, which `npm run lab -- evidence` writes.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
export const EVIDENCE_FILE = `${ROOT}docs/dev/evidence.json`;

interface Promised {
  readonly promise: string;
  readonly bound: string;
  readonly brokenBy: string;
  /** Titles as they are in the source, by file. Placeholders stand for several tests. */
  readonly tests: Readonly<Record<string, readonly string[]>>;
  /** Shown by the formal model, too. */
  readonly model?: true;
}

const NOT_COVERED = '[what is not covered](quota.md#what-is-not-covered)';

export const PROMISES: readonly Promised[] = [
  {
    promise: "No more of a customer's requests are admitted than its limit, over any number of gateways.",
    bound: 'limit requests in any 3600 s of store time',
    brokenBy: NOT_COVERED,
    model: true,
    tests: {
      'test/customers/quota/simulation.test.ts': [
        'whatever networks, stopped processes, clocks and crashes do',
        'with the store away now and then, when nothing is admitted without it',
      ],
      'test/customers/quota/late-begins.test.ts': [
        'requests that begin at the last instant do not exceed the limit',
        'with a hold that is a second too short they do',
        'without a margin for slow clocks they do',
      ],
      'test/integration/three-gateways.load.test.ts': [
        'of 3,000 concurrent requests over three gateways exactly the limit of 500 reach the backend, in a handful of store calls',
      ],
      'test/check/instances.load.test.ts': [
        'two instances admit exactly the limit, of 400 parallel checks by every call',
      ],
      'test/faults/storm.test.ts': [
        'in a storm of kills, stops, resets and delays (seed %i), no rule of the quota is broken, each request at the backend is in a trace, and each day counts its hours',
      ],
    },
  },
  {
    promise: 'A key with a limit of its own admits no more than that, and its customer no more than its limit.',
    bound:
      'limit requests in any 3600 s of store time, over all keys that replaced each other; while the store is unavailable, limit + Σ max(1, ⌊limit / Nᵢ⌋)',
    brokenBy:
      'a new or imported key, also in place of a revoked or deleted one: it begins a new hour; a reset; a first limit: what the key used before does not count; a lower limit: requests admitted before, which may begin within 2 s of their admission; lost writes. A crash strands units for an hour, and admits none',
    model: true,
    tests: {
      'test/customers/quota/key-limits.test.ts': [
        'no 3600 s see more requests begin than the customer has, nor than a key has, whatever fails',
        'with outages, no 3600 s see more than the limits and a share of each for every gateway',
        'units of leases that no request used return to the key, so exactly what is left can be used',
      ],
      'test/store/contract-keys.ts': [
        'a refusal by the key or by the customer uses nothing of the other',
        'keys with the same root share a window, each with its own number',
      ],
      'test/integration/key-limits.test.ts': [
        'two gateways admit exactly the limit of a key, then exactly that of its customer: what the key refused used nothing',
        'twenty rotations under load keep the window: no more is admitted than the limit',
        'a limit that is lowered under load refuses what exceeds the new one',
      ],
    },
  },
  {
    promise:
      'No day or month grants more units than it allows, and its count is what the usage history has in its hours.',
    bound: 'the limit, net of refunds; a unit of a closed period that comes back may be used in the next one',
    brokenBy: NOT_COVERED,
    model: true,
    tests: {
      'test/customers/quota/periods-simulation.test.ts': [
        'no period grants more than it allows, and the usage history of its hours is its count, with on_error: %s',
        'a unit is taken from hour and period, or from neither: what both have left can be used',
      ],
      'test/customers/quota/periods-year.load.test.ts': [
        'a year of customers: closed periods follow each other without gap or overlap, never change, and each is the sum of its hours',
      ],
      'test/store/period-counts.test.ts': [
        'a period grants at most its limit, and has what the history has in its hours',
        'Lua and TypeScript give the same answers and store the same fields, whatever happens to the limit',
      ],
      'test/faults/storm.test.ts': [
        'in a storm of kills, stops, resets and delays (seed %i), no rule of the quota is broken, each request at the backend is in a trace, and each day counts its hours',
      ],
    },
  },
  {
    promise: 'While the store is unavailable, excess units of a day or month are bounded.',
    bound:
      'for each gateway, its share of what was free at its last reply from the store, over all outages of the period',
    brokenBy: '`on_error: allow`; `beyond: allow`; gateways that start together and do not know of each other',
    tests: {
      'test/customers/quota/periods-simulation.test.ts': [
        'each gateway admits in one period at most its share of the limit, in all outages',
        'of what was free at the last reply, without the units that the gateway itself has reported since',
      ],
    },
  },
  {
    promise: 'A request takes the units of its route from every limit, all of them or none.',
    bound: 'exact',
    brokenBy: '–',
    tests: {
      'test/customers/quota/units.test.ts': [
        'that ends in a burst of light and heavy requests is used to the last unit, all of each or none',
        'units that a request gives back are all there again',
      ],
    },
  },
  {
    promise: 'A customer can use all of its limit.',
    bound: 'exactly the remaining units, once no lease is open',
    brokenBy:
      'a gateway that crashes, or does not reach the store for more than an hour: the unused units of its open leases stay counted for an hour',
    tests: {
      'test/customers/quota/simulation.test.ts': [
        'all of the limit that no request has used',
        'less what crashed gateways still had, and nothing else',
      ],
    },
  },
  {
    promise: 'While the store is unavailable, known keys are served and excess requests are bounded.',
    bound: '`local`: the limit and a share for each gateway; `deny`: the limit',
    brokenBy: '`on_error: allow`; gateways that start together and do not know of each other',
    model: true,
    tests: {
      'test/customers/quota/simulation.test.ts': [
        'no 3600 s see more than the limit and a share for each gateway, and nothing is reported twice',
      ],
      'test/faults/store-under-load.test.ts': [
        'Redis $name: known keys are served in time, no valid key gets 401, excess requests are bounded, and the gateway recovers',
        'Redis $name: no request fails, and the limit is exact',
      ],
      'test/faults/failover-under-load.test.ts': [
        'when a master %s under load, no valid key gets 401, no request waits too long, and excess requests are bounded',
      ],
    },
  },
  {
    promise: 'The Lua scripts and the TypeScript code count alike.',
    bound: 'same replies, same buckets',
    brokenBy: '–',
    tests: {
      'test/store/differential.test.ts': ['Lua and TypeScript give the same answers and keep the same buckets'],
    },
  },
  {
    promise: 'A request that was sent costs one unit, and one that could not be sent costs none.',
    bound: 'exact',
    brokenBy:
      'a gateway that crashes, or does not reach the store for more than an hour: at most the units of its open leases stay counted',
    tests: {
      'test/integration/quota.test.ts': [
        'every request that was sent counts one: HEAD, and what the backend refuses or does not know',
        'the unit of a request that could not be sent is refunded',
      ],
      'test/faults/lost-reply.test.ts': [
        'a reservation whose reply is lost is given back, and its request is refused if the store must decide',
      ],
    },
  },
  {
    promise: 'A client that waits as long as `Retry-After` says is admitted.',
    bound: 'its next request, if no other client of the customer sends any',
    brokenBy:
      'a lower limit meanwhile; a refusal that is decided locally, while the store is unavailable, says 30 s at most',
    tests: {
      'test/customers/quota/simulation.test.ts': ['who waits as long as a refusal says, alone, is admitted'],
      'test/integration/retry-after.test.ts': [
        'a client that waits exactly as long as its refusal said, alone, is admitted',
      ],
    },
  },
  {
    promise: 'The usage history has what was granted, less refunds.',
    bound: 'exact, for each hour and day',
    brokenBy:
      'lost writes; a crash, or an outage of more than an hour: the unused units of open leases stay in it, and requests served without the store may be missing',
    model: true,
    tests: {
      'test/store/usage-history-exact.test.ts': [
        'in Redis, each hour and day has what was granted in it, less refunds, plus reports',
        'in SQLite, each hour and day has what was granted in it, less refunds, plus reports',
      ],
    },
  },
  {
    promise: 'A changed key or customer applies in every gateway at once.',
    bound: 'a second while changes are pushed, else `auth.cache_seconds`',
    brokenBy:
      'a store that is unavailable: known keys are served for `auth.stale_if_error_seconds`; a lost connection for pushes: `auth.cache_seconds`; a gateway that stands still; requests admitted before, which may begin within 2 s of their admission',
    tests: {
      'test/integration/push.test.ts': [
        '$name by another program holds in every gateway at once',
        '$name while nothing is pushed holds when auth.cache_seconds are over',
      ],
    },
  },
  {
    promise: 'A request that may have an effect is never written to a second connection.',
    bound: 'once',
    brokenBy: '–',
    tests: {
      'test/bodies/never-twice.load.test.ts': [
        'SIGTERM under load: each POST arrives at most once, and what the backend got is answered',
      ],
    },
  },
  {
    promise: 'The backend gets only requests that a client sent, in one canonical form.',
    bound: 'byte for byte',
    brokenBy: '–',
    tests: {
      'test/http/differential.test.ts': [
        'one request, made of parts that are right or wrong',
        'several requests over one connection, some of them wrong',
        'an upload in chunks, made of parts that are right or wrong',
      ],
      'test/fuzz/fuzz.load.test.ts': [
        'mutated bytes cause no crash, hang, 500, unreadable response, or request that the client did not send',
      ],
    },
  },
  {
    promise: 'An API key is in no log, metric, response or request to the backend.',
    bound: 'none, but the one response that creates it',
    brokenBy: '`upstream.credentials: forward`',
    tests: {
      'test/integration/secrets.test.ts': [
        'is in no output about a request that passes or is refused',
        'is in no output when the backend or the store is unavailable',
        'reaches the backend in no header, whatever the response',
      ],
    },
  },
  {
    promise: 'A stop or a replacement fails no request.',
    bound: 'none, if the load balancer checks `/readyz`',
    brokenBy: 'requests that take longer than `shutdown.drain_ms`',
    tests: {
      'test/integration/shutdown.load.test.ts': [
        'no request of clients that continue to send over kept connections is lost',
      ],
      'test/faults/compose.test.ts': [
        'the services of compose.yaml work together, and replacing the gateways one by one under load fails no request',
      ],
      'test/faults/upgrade.test.ts': [
        'serve together on one Redis, up and back: no request is lost, limits are exact, and both read the same records, usage and history',
      ],
    },
  },
  {
    promise: 'A broken config file changes nothing.',
    bound: 'the last valid one stays in use',
    brokenBy: '–',
    tests: {
      'test/control/reload/swaps.load.test.ts': [
        'a file truncated anywhere disturbs no request, and each truncation is reported',
      ],
    },
  },
  {
    promise: 'Maintenance refuses the same requests in every gateway, and costs customers nothing.',
    bound: 'a second while changes are pushed, else five; it ends by itself in all of them at once',
    brokenBy:
      'a store that is unavailable: the last known state stays in force, and a gateway that starts then knows of none; requests admitted before',
    tests: {
      'test/integration/maintenance.load.test.ts': [
        'maintenance switched each second for a minute under load: 200 or 503 maintenance, and only 200 is counted',
      ],
      'test/integration/maintenance.test.ts': [
        'holds after a restart, and without the store as last known',
        'holds in all calls of the check listener that name a request, and counts no check',
      ],
    },
  },
  {
    promise: 'A usage level causes one notice, however many gateways see it.',
    bound: 'one; after a crash the same notice again, with the same id',
    brokenBy: 'an upgrade: a level may be reported once more',
    tests: {
      'test/faults/notices.test.ts': [
        'three gateways, one of them with workers, tell of each level once while a customer climbs to 120 %',
        'a notice of a gateway that is killed before its receiver responds is sent by another one, with the same id',
      ],
    },
  },
];

export interface TestEvidence {
  /** Tests with this title that passed. */
  readonly tests: number;
  /** Cases of fast-check in these; 0 where there is one for each test. */
  readonly cases: number;
  readonly seconds: number;
}

export interface EvidenceRun {
  readonly date: string;
  readonly version: string;
  /** What was checked out; undefined if nobody noted it. */
  readonly commit?: string;
}

export interface Evidence {
  /** By part, in the order of the last runs. */
  readonly runs: Readonly<Record<string, EvidenceRun>>;
  /** By file, then by title. */
  readonly tests: Readonly<Record<string, Readonly<Record<string, TestEvidence>>>>;
  /** Events of traced gateways in the fault suite. */
  readonly traces?: Readonly<Record<string, number>>;
  readonly model?: {
    readonly searches: number;
    readonly states: number;
    readonly mutants: number;
    readonly seconds: number;
  };
  /** Running totals. */
  readonly fuzz?: {
    readonly runs: number;
    readonly cases: number;
    readonly seconds: number;
    readonly findings: number;
    readonly seeds: readonly number[];
  };
  /** What `npm run test:servers` prints, by lines. */
  readonly servers?: readonly string[];
  /** The table that the tool prints. */
  readonly overAdmission?: string;
}

export function readEvidence(): Evidence {
  if (!existsSync(EVIDENCE_FILE)) return { runs: {}, tests: {} };
  return JSON.parse(readFileSync(EVIDENCE_FILE, 'utf8'));
}

/** Parts whose evidence is about the quota and its stores. */
const QUOTA_PARTS = ['tests', 'faults', 'model', 'servers', 'over-admission'];
const QUOTA_FOLDERS = ['src/customers/quota', 'src/store'];

/** Returns the parts whose evidence is older than a change of the quota or the stores, as far as git knows. */
export function staleParts(runs = readEvidence().runs, root = ROOT): string[] {
  return QUOTA_PARTS.filter((part) => {
    const { commit } = runs[part] ?? {};
    if (commit === undefined) return false;
    const { status } = spawnSync('git', ['diff', '--quiet', commit, '--', ...QUOTA_FOLDERS], { cwd: root });
    // 0: no change. Others: no repository, or one without this commit.
    return status === 1;
  });
}

const NOT_YET = 'not run yet';
const number = (value: number) => value.toLocaleString('en');

/** Rows: promise, bound, what breaks it. */
export const guaranteeRows = (): string[][] =>
  PROMISES.map(({ promise, bound, brokenBy }) => [promise, bound, brokenBy]);

/** Rows: promise, in the first of its rows, a test that shows it, last run. */
export function testRows(): string[][] {
  const evidence = readEvidence();
  return PROMISES.flatMap(({ promise, tests, model }) => {
    const rows = Object.entries(tests).flatMap(([file, titles]) =>
      titles.map((title) => [`\`${file}\`: “${title}”`, lastRun(evidence.tests[file]?.[title])]),
    );
    if (model) rows.push(['[the formal model](model.md)', '[below](#other-runs)']);
    return rows.map((row, index) => [index === 0 ? promise : '', ...row]);
  });
}

function lastRun(ran: TestEvidence | undefined): string {
  if (ran === undefined) return NOT_YET;
  const cases = Math.max(ran.cases, ran.tests);
  return `${number(cases)} ${cases === 1 ? 'case' : 'cases'}, ${number(Math.ceil(ran.seconds))} s`;
}

/** What else ran: a table of parts. */
export function evidenceRows(): string[][] {
  const { runs: ran, model, traces, fuzz, servers } = readEvidence();
  const runs = Object.fromEntries(
    Object.entries(ran).map(([part, { date, version, commit }]) => {
      return [part, `${date}, after ${version}${commit === undefined ? '' : ` (${commit})`}`];
    }),
  );
  const seeds = fuzz?.seeds.slice(-10).join(', ');
  return [
    ['tests of the table above, of `npm test`', '`npm run lab -- evidence tests`', runs.tests ?? NOT_YET],
    [
      'tests of outages and failovers, traced and replayed against the rules of the model',
      '`npm run lab -- evidence faults`',
      traces === undefined
        ? NOT_YET
        : `${runs.faults}: ${number(traces.begins ?? 0)} requests on ${number(traces.grants ?? 0)} grants, ${number(traces.refunds ?? 0)} refunds, no violation`,
    ],
    [
      'the formal model, and mutants that it must refute',
      '`npm run lab -- evidence model`',
      model === undefined
        ? NOT_YET
        : `${runs.model}: ${model.searches} searches, ${number(model.states)} states, ${model.mutants} mutants, ${number(model.seconds)} s`,
    ],
    [
      'mutated and generated requests, in all runs so far',
      '`npm run lab -- evidence fuzz`',
      fuzz === undefined
        ? NOT_YET
        : `${runs.fuzz}: ${number(fuzz.cases)} requests in ${number(fuzz.seconds)} s (runs: ${fuzz.runs}), findings: ${fuzz.findings}; last seeds ${seeds}`,
    ],
    [
      'the contract of the stores, on the servers of Debian releases',
      '`npm run lab -- evidence servers`',
      servers === undefined ? NOT_YET : `${runs.servers}: ${servers.join('; ')}`,
    ],
    ['attacks on the limit', '`npm run lab -- evidence over-admission`', runs['over-admission'] ?? NOT_YET],
  ];
}

/** Returns what is wrong with the list of promises, one sentence each. */
export function guaranteeFaults(): string[] {
  const faults = PROMISES.flatMap(({ tests }) =>
    Object.entries(tests).flatMap(([file, titles]) => {
      if (!existsSync(ROOT + file)) return [`scripts/guarantees.ts names ${file}, which does not exist`];
      const source = readFileSync(ROOT + file, 'utf8');
      const isThere = (title: string) => ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote}`));
      return titles
        .filter((title) => !isThere(title))
        .map((title) => `${file} has no test “${title}”: scripts/guarantees.ts`);
    }),
  );
  return faults;
}
