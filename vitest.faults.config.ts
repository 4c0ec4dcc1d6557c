import { defineConfig } from 'vitest/config';

/** Faults of whole systems, each against real processes: minutes, where `npm test` takes seconds a file. */
export default defineConfig({
  test: {
    include: ['test/faults/**/*.test.ts'],
    globalSetup: ['test/support/find-redis.ts', 'test/faults/find-compose-programs.ts'],
    setupFiles: ['test/support/traces/setup.ts'],
    testTimeout: 180_000,
    hookTimeout: 120_000,
    // Each file starts a handful of servers.
    maxWorkers: 2,
  },
});
