/** Says at the end of a run how many cases were tried over raw sockets: a suite that shrinks in silence proves less. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    httpTallyFile: string;
  }
}

// biome-ignore lint/style/noDefaultExport: vitest calls the default export of a globalSetup file
export default function setup({ provide }: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-tally-'));
  const file = join(folder, 'cases');
  writeFileSync(file, '');
  provide('httpTallyFile', file);
  return () => {
    const counts = readFileSync(file, 'utf8').split('\n').filter(Boolean).map(Number);
    rmSync(folder, { recursive: true });
    const total = counts.reduce((sum, count) => sum + count, 0);
    if (total > 0) process.stdout.write(`\n      HTTP  ${total} cases tried over raw sockets\n`);
  };
}
