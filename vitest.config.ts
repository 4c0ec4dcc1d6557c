import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // What takes its time, or needs more than npm: npm run test:faults, npm run test:prometheus.
    exclude: [...configDefaults.exclude, 'test/faults/**', 'test/prometheus/**'],
    globalSetup: ['test/support/find-redis.ts', 'test/http/support/tally-report.ts'],
    // Tests wait more than they compute, so there may be twice as many as the two cores of a small machine.
    maxWorkers: 4,
    // Files share the modules of their worker: no module under src/ may keep state that a second gateway would notice.
    isolate: false,
    // Bounds for a busy machine: what is slow is not thereby wrong.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
