import { defineConfig, mergeConfig } from 'vitest/config';
import tests from './vitest.config.ts';

/** As `npm test`, but with all random cases, which are counted for each test: scripts/evidence.ts. */
export default mergeConfig(
  tests,
  defineConfig({ test: { setupFiles: ['test/support/count-cases.ts'], provide: { shareOfRuns: 1 } } }),
);
