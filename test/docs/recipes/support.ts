import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { parse } from 'yaml';

type Sections = Record<string, Record<string, unknown>>;

/** What only the machine of the test decides: addresses of listeners, of the backend and of the store. */
const PLACES = new Set(['host', 'port', 'urls', 'url', 'token']);

/** Returns the only block of a recipe in this language that contains a text. */
export function blockOf(recipe: string, language: string, text = ''): string {
  const page = readFileSync(new URL(`../../../docs/recipes/${recipe}.md`, import.meta.url), 'utf8');
  const blocks = [...page.matchAll(/^ *```(\w+)\n(.*?)^ *```$/gms)];
  const [block, ...others] = blocks.filter(([, name, code = '']) => name === language && code.includes(text));
  if (block?.[2] === undefined || others.length > 0) {
    throw new Error(`${recipe}.md does not have exactly one block of ${language} with ${text}`);
  }
  return block[2];
}

/** Returns the sections of the config file in a recipe, or of the one with this text, without the addresses. */
export function configOf(recipe: string, text = ''): Sections {
  const sections: Sections = parse(blockOf(recipe, 'yaml', text));
  for (const section of Object.values(sections)) for (const place of PLACES) delete section[place];
  return sections;
}

/** Creates a folder that is removed when the test that called this ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-recipe-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
