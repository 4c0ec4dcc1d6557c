/**
 * Ends the process if its Node.js is too old, and turns on the cache of compiled modules. The first import of each start
 * file. Plain JavaScript, because a Node.js that is too old for the rest must still be able to run it.
 */
import { readFileSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const { engines, optionalDependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const [oldest] = engines.node.match(/\d+/);

if (Number.parseInt(process.versions.node, 10) < Number(oldest)) {
  const bundled = bundledNode();
  const advice =
    bundled === undefined
      ? `Install a newer one (https://nodejs.org), or install tollgate without --omit=optional: that brings a Node.js along.`
      : `A newer one was installed with tollgate. Put it first on PATH:\n  export PATH="${dirname(bundled)}${delimiter}$PATH"`;
  process.stderr.write(
    `tollgate needs Node.js ${oldest} or newer, and this is Node.js ${process.versions.node} (${process.execPath}).\n${advice}\n`,
  );
  process.exit(1);
}

// From the second start on, the modules need not be compiled. In a folder of the package, as trustworthy as the sources: in
// a shared temporary folder, another user of the machine could plant code. A user who cannot write it goes without.
module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/node-compile', import.meta.url)));

/** The program among the optional dependencies that is for this platform; npm installs no other. */
function bundledNode() {
  const require = createRequire(import.meta.url);
  for (const name of Object.keys(optionalDependencies)) {
    try {
      return require.resolve(`${name}/bin/node`);
    } catch {
      // For another platform, or left out.
    }
  }
  return undefined;
}
