/**
 * Runs the program with the bundled Node.js if this one is too old, and turns on the cache of compiled modules. The first
 * import of each start file. Plain JavaScript, because a Node.js that is too old for the rest must still be able to run it.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const { engines, optionalDependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const [oldest] = engines.node.match(/\d+/);

if (Number.parseInt(process.versions.node, 10) < Number(oldest)) {
  const bundled = bundledNode();
  if (bundled !== undefined && process.execPath !== bundled) await runWith(bundled);
  process.stderr.write(
    `tollgate needs Node.js ${oldest} or newer, and this is Node.js ${process.versions.node} (${process.execPath}).\n` +
      'Install a newer one (https://nodejs.org), or install tollgate without --omit=optional: that brings a Node.js along.\n',
  );
  process.exit(1);
}

// From the second start on, the modules need not be compiled. In a folder of the package, as trustworthy as the sources: in
// a shared temporary folder, another user of the machine could plant code. A user who cannot write it goes without.
module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/node-compile', import.meta.url)));

/** Runs the same command line with another Node.js, and ends as it does. Never resolves. */
function runWith(node) {
  // Before the child runs: a signal that came between the two would end this process alone. Handlers run after this function.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) process.on(signal, () => child.kill(signal));
  // A terminal and some service managers send a signal to the child too, which then gets it twice: see process-signals.ts.
  // biome-ignore lint/style/noProcessEnv: an old Node.js cannot load the module that reads it
  const env = { ...process.env, TOLLGATE_SIGNALS_FORWARDED: '1' };
  const child = spawn(node, [...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit', env });
  return new Promise(() => {
    child.on('error', (error) => {
      process.stderr.write(`${node}, which was installed with tollgate, cannot be run: ${error.message}\n`);
      process.exit(1);
    });
    child.on('exit', (status, signal) => {
      if (signal === null) process.exit(status);
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    });
  });
}

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
