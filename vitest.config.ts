import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { CHILD_ENVIRONMENT } from './test/support/child-environment.ts';
import { folderInMemory } from './test/support/folder-in-memory.ts';
import { slowFirst } from './test/support/slow-first.ts';

// The processes that run the tests also start threads and programs.
// biome-ignore lint/style/noProcessEnv: vitest starts them with this environment
process.env.NODE_COMPILE_CACHE ??= CHILD_ENVIRONMENT.NODE_COMPILE_CACHE;
// A twelfth less CPU time for tests with embedded stores, and they do not wait for the disk.
const inMemory = folderInMemory();
// biome-ignore lint/style/noProcessEnv: as above
if (inMemory !== undefined) process.env.TMPDIR ??= inMemory;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // What takes its time, or needs more than npm: npm run test:faults, test:prometheus, test:image and test:console.
    exclude: [
      ...configDefaults.exclude,
      'test/faults/**',
      'test/**/*.load.test.ts',
      'test/prometheus/**',
      'test/image/**',
      'test/{console,portal}/browser/**',
    ],
    // The others are tried by npm run test:faults.
    provide: { shareOfRuns: 0.05 },
    globalSetup: [
      'test/support/find-redis.ts',
      'test/support/bound-compile-cache.ts',
      'test/http/support/tally-report.ts',
    ],
    // Tests wait about as long as they compute: four workers used 80 % of two cores, six 92 %, eight 97 %.
    maxWorkers: Math.min(4 * availableParallelism(), 8),
    // Files share the modules of their worker: no module under src/ may keep state that a second gateway would notice.
    isolate: false,
    // Node.js runs tests and sources as it runs the program, without a transform: a tenth less CPU time.
    experimental: { viteModuleRunner: false },
    // Files that take seconds each.
    sequence: { sequencer: slowFirst(/\/test\/(customers|store|control|cli|integration|regression)\//) },
    // Bounds for a busy machine: what is slow is not thereby wrong.
    expect: { poll: { timeout: 20_000, interval: 100 } },
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
