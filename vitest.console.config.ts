import { defineConfig } from 'vitest/config';
import { slowFirst } from './test/support/slow-first.ts';

/** The console and the portal in a real browser, which Debian's package brings. */
export default defineConfig({
  test: {
    include: ['test/{console,portal}/browser/**/*.test.ts'],
    globalSetup: ['test/support/find-redis.ts', 'test/console/browser/support/find-chromium.ts'],
    testTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 180_000,
    // Each file starts a browser of several processes.
    maxWorkers: 2,
    // Minutes each.
    sequence: { sequencer: slowFirst(/\/(walk|pages)-/) },
  },
});
