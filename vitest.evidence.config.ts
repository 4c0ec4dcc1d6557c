import { defineConfig, mergeConfig } from 'vitest/config';
import tests from './vitest.config.ts';

/** As `npm test`, and counts the cases of each test: scripts/evidence.ts. */
export default mergeConfig(tests, defineConfig({ test: { setupFiles: ['test/support/count-cases.ts'] } }));
