import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/find-redis.ts'],
    // Bounds for a busy machine: what is slow is not thereby wrong.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
