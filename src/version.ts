import { readFileSync } from 'node:fs';

/** Of package.json, which lies beside both `src` and `dist`. */
export function readVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return String(manifest.version);
}
