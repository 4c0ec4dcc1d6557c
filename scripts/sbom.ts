/**
 * Prints the software bill of materials (CycloneDX), without the time and the random number that npm writes into it, so
 * that every build prints the same one. `node scripts/sbom.ts` lists the packages of the tarball. With `--image FILE`, the
 * list is that of the image: without the bundled Node.js, but with the one that runs this script, and with the Debian
 * packages in FILE, one in each line: name, version, architecture, source package, code name of the release.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

interface LockedPackage {
  readonly dev?: boolean;
  readonly optional?: boolean;
}

interface Component {
  readonly 'bom-ref': string;
  readonly type: 'application' | 'library';
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly cpe?: string;
}

function nodeComponent(): Component {
  const { node: version } = process.versions;
  const cpe = `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`;
  const purl = `pkg:generic/node@${version}`;
  return { 'bom-ref': purl, type: 'application', name: 'node', version, purl, cpe };
}

function debianComponent(line: string): Component {
  const [name = '', version = '', architecture = '', source = '', release = ''] = line.split(' ');
  const qualifiers = new URLSearchParams({ arch: architecture, distro: release, upstream: source });
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?${qualifiers}`;
  return { 'bom-ref': purl, type: 'library', name, version, purl };
}

const { image } = parseArgs({ options: { image: { type: 'string' } } }).values;
const left = image === undefined ? ['devDependencies'] : ['devDependencies', 'optionalDependencies'];
const isShipped = ({ dev, optional }: LockedPackage) => dev !== true && (image === undefined || optional !== true);

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
for (const name of left) {
  delete manifest[name];
  delete lock.packages[''][name];
}
const packages = Object.entries<LockedPackage>(lock.packages).filter(([, each]) => isShipped(each));
// npm lists what is in these two files. Its own --omit leaves out packages that an omitted one needs too.
const work = mkdtempSync(join(tmpdir(), 'tollgate-sbom-'));
process.on('exit', () => rmSync(work, { recursive: true }));
writeFileSync(join(work, 'package.json'), JSON.stringify(manifest));
writeFileSync(join(work, 'package-lock.json'), JSON.stringify({ ...lock, packages: Object.fromEntries(packages) }));
const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'];
const sbom = JSON.parse(execFileSync('npm', args, { cwd: work, encoding: 'utf8' }));
delete sbom.serialNumber;
delete sbom.metadata.timestamp;
// npm writes the name of the folder.
sbom.metadata.component.name = manifest.name;
if (image !== undefined)
  sbom.components.push(nodeComponent(), ...readFileSync(image, 'utf8').trim().split('\n').map(debianComponent));
console.log(JSON.stringify(sbom, null, 2));
