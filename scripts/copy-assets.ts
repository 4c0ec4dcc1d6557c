/**
 * Copies what the compiler leaves behind: the Lua scripts that the store reads beside its own modules, and the clients in
 * the browser, whose types the gateway strips.
 */
import { cpSync } from 'node:fs';
import { sep } from 'node:path';

const BROWSER_CODE = new RegExp(['', 'pages', '\\w+', ''].join(`\\${sep}`));

cpSync(new URL('../src', import.meta.url), new URL('../dist', import.meta.url), {
  recursive: true,
  filter: (source) => !source.endsWith('.ts') || BROWSER_CODE.test(source),
});
