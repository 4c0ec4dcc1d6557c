import { defineConfig } from 'vitest/config';

/** The image, built from the Dockerfile without a daemon, and run. */
export default defineConfig({
  test: {
    include: ['test/image/**/*.test.ts'],
    globalSetup: ['test/support/find-redis.ts', 'test/image/build-image.ts'],
    testTimeout: 60_000,
  },
});
