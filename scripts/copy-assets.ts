/** Copies what the compiler leaves behind: the Lua scripts that the store reads beside its own modules. */
import { cpSync } from 'node:fs';

cpSync(new URL('../src', import.meta.url), new URL('../dist', import.meta.url), {
  recursive: true,
  filter: (source) => !source.endsWith('.ts'),
});
