import { defineConfig } from 'vitest/config';
import { slowFirst } from './test/support/slow-first.ts';

/**
 * What takes minutes, or loads the machine: faults of whole systems, each against real processes; tests under load, and
 * of programs and threads that are started again and again; nineteen twentieths of the random cases of which `npm test`
 * tries one; and all of the enumerated cases of which it tries a twentieth.
 */
export default defineConfig({
  test: {
    testTimeout: 180_000,
    hookTimeout: 120_000,
    // Bounds for a busy machine, as in `npm test`.
    expect: { poll: { timeout: 20_000 } },
    // Those that take a minute or more.
    sequence: {
      sequencer: slowFirst(
        /\/(simulation|periods-year|several-backends|redis-topologies-contract|maintenance|changes-that-end|many-slow-senders)\./,
      ),
    },
    projects: [
      {
        extends: true,
        test: {
          name: 'faults',
          // Each file starts a handful of servers.
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
          include: ['test/faults/**/*.test.ts'],
          globalSetup: ['test/support/find-redis.ts', 'test/faults/find-programs.ts'],
          setupFiles: ['test/support/traces/setup.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'load',
          maxWorkers: 4,
          // As in `npm test`.
          isolate: false,
          sequence: { groupOrder: 1 },
          include: [
            'test/**/*.load.test.ts',
            'test/**/quota/{late-begins,simulation,usage-history,periods-simulation,key-limits}.test.ts',
            'test/**/store/{differential,period-counts}.test.ts',
            'test/**/units-in-redis.test.ts',
            'test/config/load.test.ts',
            'test/**/response-differential.test.ts',
            'test/bodies/{never-twice,splits}.test.ts',
            'test/http/{differential,head-syntax,target}.test.ts',
          ],
          globalSetup: ['test/support/find-redis.ts', 'test/http/support/tally-report.ts'],
          provide: { shareOfRuns: 0.95 },
        },
      },
    ],
  },
});
