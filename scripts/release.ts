/**
 * Prepares a release: `npm run release -- 1.2.3`. Checks the sources, writes the version into them, takes the pictures of
 * the docs, makes the files to hand out in release/1.2.3 and tries the tarball. If a step fails, the sources are as before.
 * Commits, tags and publishes nothing: it prints the commands.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lastReleasedVersion, makeArtifacts, versionFault, writeVersion } from './release-files.ts';

const REPOSITORY = fileURLToPath(new URL('../', import.meta.url));

function run(program: string, ...args: string[]): void {
  execFileSync(program, args, { cwd: REPOSITORY, stdio: 'inherit' });
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: REPOSITORY, encoding: 'utf8' }).trim();
}

function findFault(version: string | undefined): string | undefined {
  if (version === undefined) return 'name the version: npm run release -- 1.2.3';
  const { version: current } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'));
  const fault = versionFault(current, version);
  if (fault !== undefined) return fault;
  if (git('status', '--porcelain') !== '') return 'the working tree has changes: commit or remove them first';
  if (git('tag', '--list', `v${version}`) !== '') return `the tag v${version} exists`;
  return undefined;
}

const [version = ''] = process.argv.slice(2);
const fault = findFault(version || undefined);
if (fault !== undefined) {
  console.error(`release: ${fault}`);
  process.exit(1);
}

// Before this version is written there.
const last = lastReleasedVersion(REPOSITORY);
try {
  run('npm', 'run', '--silent', 'check');
  // UTC, as in all times of the gateway.
  writeVersion(REPOSITORY, version, new Date().toISOString().slice(0, 10));
  // Of this version, which they show.
  run('npm', 'run', '--silent', 'lab', '--', 'pictures');
  const tarball = makeArtifacts(REPOSITORY, version);
  run('.ci/install', tarball);
} catch (error) {
  git('restore', '.');
  console.error(`release: ${error instanceof Error ? error.message : error}\nThe sources are as before.`);
  process.exit(1);
}

const out = join(REPOSITORY, 'release', version);
console.log(`
Version ${version} is written into:
${git('diff', '--stat')}

The files to hand out are in ${relative(process.cwd(), out)}:
${readdirSync(out).join('\n')}

The last release, which npm run test:faults tests together with these sources: ${last}.
When npm test and .ci/run pass, commit and tag:
  git commit --all --message 'chore: release ${version}'
  git tag --annotate v${version} --message 'Tollgate ${version}'
To discard it:
  git restore . && rm -r release/${version}`);
