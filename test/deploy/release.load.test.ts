/** `npm run release`: each step on a copy of the sources, but for `npm run check`. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { cutChangelog, makeArtifacts, versionFault, writeVersion } from '../../scripts/release-files.ts';
import { REPOSITORY } from './support/dockerfile.ts';

const SOURCES = ['bin', 'config', 'docs', 'scripts', 'src', 'deploy/helm/tollgate/Chart.yaml', 'CHANGELOG.md'];
const FILES = ['Dockerfile', 'LICENSE', 'README.md', 'package.json', 'package-lock.json', 'tsconfig.json'];
const VERSION = '98.7.6';
const manifest = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'));

function copySources(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-release-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const path of [...SOURCES, ...FILES, 'tsconfig.build.json'])
    cpSync(join(REPOSITORY, path), join(folder, path), { recursive: true });
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
  // Right after a release nothing is unreleased.
  const changelog = readFileSync(join(folder, 'CHANGELOG.md'), 'utf8');
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog.replace('## [Unreleased]\n', '## [Unreleased]\n\n- New.\n'));
  return folder;
}

describe('a release', () => {
  test.each(['0.2.0', '0.1.2', '1.0.0', '0.1.10'])('may follow 0.1.1 as %s', (version) => {
    expect(versionFault('0.1.1', version)).toBeUndefined();
  });

  test('may follow its own development version, but an earlier release cannot', () => {
    for (const version of ['0.3.0', '0.3.1', '1.0.0']) expect(versionFault('0.3.0-dev', version)).toBeUndefined();
    for (const version of ['0.3.0-dev', '0.2.9']) expect(versionFault('0.3.0-dev', version)).toContain(version);
  });

  test.each(['0.1.1', '0.1.0', '0.0.9', '0.2', 'v0.2.0', '0.2.0-rc.1', '01.0.0', '0.2.0; rm -r .'])(
    'cannot follow 0.1.1 as %s',
    (version) => expect(versionFault('0.1.1', version)).toContain(version),
  );

  test('has what was unreleased in the changelog', () => {
    const text = '# Changelog\n\n## [Unreleased]\n\n### Added\n- New.\n\n## [0.1.0] - 2026-01-01\n\n- Old.\n';
    expect(cutChangelog(text, '0.2.0', '2026-11-22')).toBe(
      '# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-22\n\n### Added\n- New.\n\n## [0.1.0] - 2026-01-01\n\n- Old.\n',
    );
  });

  test.each([
    ['no changes', '## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- Old.\n'],
    ['no such section', '# Changelog\n'],
  ])('is refused where the changelog has %s', (_, text) => {
    expect(() => cutChangelog(text, '0.2.0', '2026-11-22')).toThrow('CHANGELOG.md');
  });

  test('has one version everywhere', () => {
    const folder = copySources();
    const read = (file: string) => readFileSync(join(folder, file), 'utf8');
    const versions = () => {
      const lock = JSON.parse(read('package-lock.json'));
      const chart = parse(read('deploy/helm/tollgate/Chart.yaml'));
      const label = /image\.version="(.*)"/.exec(read('Dockerfile'))?.[1];
      const own = JSON.parse(read('package.json')).version;
      return [own, lock.version, lock.packages[''].version, chart.version, chart.appVersion, label];
    };
    expect(new Set(versions()), 'now').toStrictEqual(new Set([manifest.version]));
    const before = read('package.json');
    writeVersion(folder, VERSION, '2026-11-22');
    expect(new Set(versions())).toStrictEqual(new Set([VERSION]));
    expect(read('package.json')).toBe(before.replace(manifest.version, VERSION));
    expect(read('CHANGELOG.md')).toContain(`## [Unreleased]\n\n## [${VERSION}] - 2026-11-22\n`);
  });

  test('is a tarball with the compiled program, the list of its packages, and checksums', () => {
    const folder = copySources();
    writeVersion(folder, VERSION, '2026-11-22');
    const tarball = makeArtifacts(folder, VERSION);
    const out = join(folder, 'release', VERSION);
    const names = [`tollgate-${VERSION}.cdx.json`, `tollgate-${VERSION}.tgz`];
    expect(readdirSync(out).toSorted()).toStrictEqual(['SHA256SUMS', ...names]);

    const listed = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim().split('\n');
    const paths = listed.map((path) => path.slice('package/'.length));
    expect(paths).toEqual(expect.arrayContaining(['bin/tollgate.js', 'dist/main.js', 'config/gateway.yaml']));
    expect(paths.filter((path) => /^(test|src|node_modules|release)\//.test(path))).toStrictEqual([]);
    const packed = execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], { encoding: 'utf8' });
    expect(JSON.parse(packed).version).toBe(VERSION);

    const sbom = JSON.parse(readFileSync(join(out, `tollgate-${VERSION}.cdx.json`), 'utf8'));
    expect(sbom.metadata.component).toMatchObject({ type: 'application', name: 'tollgate', version: VERSION });
    const components = sbom.components.map(({ name }: { name: string }) => name);
    const { dependencies, optionalDependencies, devDependencies } = manifest;
    expect(components).toEqual(expect.arrayContaining(Object.keys({ ...dependencies, ...optionalDependencies })));
    expect(Object.keys(devDependencies).filter((name) => components.includes(name))).toStrictEqual([]);

    const sum = (name: string) =>
      createHash('sha256')
        .update(readFileSync(join(out, name)))
        .digest('hex');
    const sums = names.map((name) => `${sum(name)}  ${name}\n`).join('');
    expect(readFileSync(join(out, 'SHA256SUMS'), 'utf8')).toBe(sums);
  });

  test('warns of pictures that are older than a page, and of no others', () => {
    const folder = copySources();
    const warnings = (before = '') => {
      const script = `import * as pictures from './scripts/pictures.ts'; ${before}; console.log(pictures.pictureWarnings().length)`;
      const options = { cwd: folder, encoding: 'utf8' } as const;
      return Number(execFileSync('node', ['--input-type=module', '--eval', script], options));
    };
    expect(warnings('pictures.recordPages()')).toBe(0);
    writeFileSync(join(folder, 'src/main.ts'), '');
    expect(warnings()).toBe(0);
    writeFileSync(join(folder, 'src/pages/client/pages.css'), '');
    expect(warnings()).toBe(1);
  });

  test('is refused in a working tree with changes, and changes nothing', () => {
    const folder = copySources();
    const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' });
    git('init', '--quiet');
    const before = git('status', '--porcelain');
    const { status, stderr } = spawnSync('node', ['scripts/release.ts', VERSION], { cwd: folder, encoding: 'utf8' });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: 'release: the working tree has changes: commit or remove them first\n',
    });
    expect(git('status', '--porcelain')).toBe(before);
  });
});
