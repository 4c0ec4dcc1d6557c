import { readFileSync } from 'node:fs';

/** Returns the version in package.json, which is in the parent folder of both `src` and `dist`. */
export function readVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return String(manifest.version);
}
