/** The steps of a release that change or make files. Each gets the folder of a checkout. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const UNRELEASED = '## [Unreleased]\n';
const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/;
/** Marks the version of sources between two releases. */
const DEVELOPMENT = /-dev$/;

/** Where versions are, besides package.json and package-lock.json, which npm changes. Each pattern matches exactly once. */
const PLACES: readonly (readonly [file: string, version: RegExp])[] = [
  ['deploy/helm/tollgate/Chart.yaml', /(?<=^version: ).*$/m],
  ['deploy/helm/tollgate/Chart.yaml', /(?<=^appVersion: ).*$/m],
  ['Dockerfile', /(?<=org\.opencontainers\.image\.version=")[^"]*(?=")/],
];

/** Returns the version that the changelog names last. @throws Error if it names none. */
export function lastReleasedVersion(folder: string): string {
  const [, version] = /^## \[(\d+\.\d+\.\d+)\]/m.exec(readFileSync(join(folder, 'CHANGELOG.md'), 'utf8')) ?? [];
  if (version === undefined) throw new Error('CHANGELOG.md names no released version');
  return version;
}

/** Returns why `next` cannot follow `current`, or undefined if it can. 1.2.3 follows 1.2.3-dev, its development version. */
export function versionFault(current: string, next: string): string | undefined {
  const [old, wanted] = [current.replace(DEVELOPMENT, ''), next].map((text) =>
    VERSION.exec(text)?.slice(1).map(Number),
  );
  if (wanted === undefined) return `"${next}" is not a version of the form 1.2.3`;
  const different = wanted.findIndex((number, index) => number !== old?.[index]);
  const isHigher = different < 0 ? DEVELOPMENT.test(current) : Number(wanted[different]) > Number(old?.[different]);
  return isHigher ? undefined : `${next} is not higher than the current version ${current}`;
}

/**
 * Returns the changelog with the entries of "Unreleased" under `version` and `date`, and an empty "Unreleased" above.
 * @throws Error if there is nothing to release.
 */
export function cutChangelog(text: string, version: string, date: string): string {
  const [before, after, ...more] = text.split(UNRELEASED);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error('CHANGELOG.md has not exactly one section "## [Unreleased]"');
  const [entries = ''] = after.split(/^## /m);
  if (!/^- /m.test(entries)) throw new Error('CHANGELOG.md lists no changes under "Unreleased"');
  return `${before}${UNRELEASED}\n## [${version}] - ${date}\n${after}`;
}

/** Writes the version into the changelog, both files of npm, the chart and the image's label. */
export function writeVersion(folder: string, version: string, date: string): void {
  const edit = (file: string, change: (text: string) => string) => {
    const path = join(folder, file);
    writeFileSync(path, change(readFileSync(path, 'utf8')));
  };
  edit('CHANGELOG.md', (text) => cutChangelog(text, version, date));
  execFileSync('npm', ['version', '--no-git-tag-version', version], { cwd: folder, stdio: 'ignore' });
  for (const [file, place] of PLACES) {
    edit(file, (text) => {
      if (!place.test(text)) throw new Error(`${file} has no ${place}`);
      return text.replace(place, version);
    });
  }
}

/** Makes the tarball, its list of packages and the checksums of both. Returns the path of the tarball. */
export function makeArtifacts(folder: string, version: string): string {
  const out = join(folder, 'release', version);
  // The compiler leaves the output of deleted sources in dist.
  for (const stale of [out, join(folder, 'dist')]) rmSync(stale, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  run('npm', 'pack', '--silent', '--pack-destination', out);
  writeFileSync(join(out, `tollgate-${version}.cdx.json`), run('node', 'scripts/sbom.ts'));
  const sums = readdirSync(out).map((name) => {
    const hash = createHash('sha256').update(readFileSync(join(out, name)));
    return `${hash.digest('hex')}  ${name}\n`;
  });
  writeFileSync(join(out, 'SHA256SUMS'), sums.join(''));
  return join(out, `tollgate-${version}.tgz`);
}
