/** Finds the Chromium that the console is tried in, once for the whole run. Nothing is downloaded but Debian's package. */
import type { TestProject } from 'vitest/node';
import { canInstall, install, isProgram, onPath } from '../../../support/programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    chromium: string;
  }
}

// The shell has the engine without the browser's own windows and services: two fifths less CPU time.
const PROGRAMS = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];

// biome-ignore lint/style/noDefaultExport: vitest calls the default export of a globalSetup file
export default function setup({ provide }: TestProject): void {
  provide('chromium', findChromium(process.env));
}

function findChromium(env: NodeJS.ProcessEnv): string {
  const chosen = env.CHROMIUM;
  if (chosen) {
    if (!isProgram(chosen)) throw new Error(`CHROMIUM is ${chosen}, which is not a program`);
    return chosen;
  }
  if (onPath(PROGRAMS, env) === undefined && canInstall()) {
    install({ name: 'chromium-headless-shell' }, env);
    // Without any font there is no text to look at.
    install({ name: 'fonts-liberation' }, env);
  }
  const found = onPath(PROGRAMS, env);
  if (found !== undefined) return found;
  throw new Error('These tests need Chromium: install it (Debian\'s package "chromium"), or set CHROMIUM to its path.');
}
