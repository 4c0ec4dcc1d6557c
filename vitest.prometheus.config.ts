import { defineConfig } from 'vitest/config';

/** Alerts and dashboard on a real Prometheus, which Debian's package brings. */
export default defineConfig({
  test: {
    include: ['test/prometheus/**/*.test.ts'],
    globalSetup: ['test/prometheus/find-prometheus.ts'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
