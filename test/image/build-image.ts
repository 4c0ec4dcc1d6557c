/**
 * Builds the image twice from the Dockerfile, once for the whole run: by buildah in a chroot, which needs root but no
 * daemon. No registry of images is asked: a minimal Debian with the Node.js of this checkout stands in for the base image.
 * Nothing outside a temporary folder is written, except that missing Debian packages are installed.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { DOCKERFILE, REPOSITORY } from '../deploy/support/dockerfile.ts';
import { canInstall, onPath } from '../support/programs.ts';

export interface BuiltImage {
  /** The image's files, as a folder. */
  readonly root: string;
  /** Digests of the layers, of each build. */
  readonly layers: readonly [readonly string[], readonly string[]];
  readonly bytes: number;
  readonly config: {
    readonly Env: readonly string[];
    readonly WorkingDir: string;
    readonly User: string;
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly Labels: Readonly<Record<string, string>>;
  };
  readonly healthCheck: readonly string[];
}

declare module 'vitest' {
  interface ProvidedContext {
    /** Undefined where images cannot be built. */
    image: BuiltImage | undefined;
  }
}

const PROGRAMS = ['buildah', 'mmdebstrap'];
const BASE_IMAGE = /^FROM (\S+) AS base$/m.exec(DOCKERFILE)?.[1];
/** Which sources the image was made from; any text will do here. */
export const REVISION = 'the-revision-of-this-build';
const CERTIFICATES = process.env.NODE_EXTRA_CA_CERTS ?? '/etc/ssl/certs/ca-certificates.crt';

// biome-ignore lint/style/noDefaultExport: vitest calls the default export of a globalSetup file
export default function setup({ provide }: TestProject): (() => Promise<void>) | undefined {
  const work = mkdtempSync(join(tmpdir(), 'tollgate-image-'));
  // Not synchronous: vitest ends its workers at the same time, and gigabytes may take longer than it waits for them.
  const cleanUp = () => rm(work, { recursive: true, force: true });
  const obstacle = findObstacle() ?? downloadDebian(work);
  if (obstacle !== undefined) process.stderr.write(`The image is not built, and its tests are skipped: ${obstacle}\n`);
  try {
    provide('image', obstacle === undefined ? buildTwice(work) : undefined);
  } catch (error) {
    rmSync(work, { recursive: true, force: true });
    throw error;
  }
  return cleanUp;
}

/** Returns why images cannot be built here, or undefined if they can. */
function findObstacle(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'it needs root on Linux';
  if (spawnSync('unshare', ['--mount', 'true']).status !== 0) return 'this machine allows no mount namespaces';
  const isMissing = (name: string) => onPath([name], process.env) === undefined;
  if (PROGRAMS.some(isMissing) && canInstall()) {
    const options = { stdio: 'inherit', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } } as const;
    spawnSync('apt-get', ['update', '-qq'], options);
    spawnSync('apt-get', ['install', '-qq', '-y', '--no-install-recommends', ...PROGRAMS], options);
  }
  const missing = PROGRAMS.filter(isMissing);
  return missing.length > 0 ? `install ${missing.join(' and ')}` : undefined;
}

/** Makes debian.tar, a minimal Debian of the base image's release. Returns why it cannot, or undefined if it can. */
function downloadDebian(work: string): string | undefined {
  const version = /-(\w+)-slim$/.exec(BASE_IMAGE ?? '')?.[1] ?? 'stable';
  const args = ['--quiet', '--variant=essential', '--include=libatomic1,libstdc++6', version, join(work, 'debian.tar')];
  const { status } = spawnSync('mmdebstrap', args, { stdio: ['ignore', 'ignore', 'inherit'] });
  return status === 0 ? undefined : `Debian's packages cannot be downloaded for ${version}`;
}

function buildTwice(work: string): BuiltImage {
  const storage = ['--root', join(work, 'storage'), '--runroot', join(work, 'run'), '--storage-driver', 'vfs'];
  const buildah = (command: string, ...args: string[]) => run('buildah', [...storage, command, ...args]);
  makeBase(work, buildah);

  // npm gets the registry and the certificates of this machine, and none of its credentials.
  const npmrc = join(work, 'npmrc');
  writeFileSync(npmrc, `registry=${run('npm', ['config', 'get', 'registry'])}\n`);
  const mounts = ['--volume', `${npmrc}:/root/.npmrc:ro`];
  if (existsSync(CERTIFICATES)) {
    writeFileSync(npmrc, 'cafile=/run/ca.crt\n', { flag: 'a' });
    mounts.push('--volume', `${realpathSync(CERTIFICATES)}:/run/ca.crt:ro`);
  }
  // The OCI format has no health check; timestamps are the only thing that may differ between two builds.
  const options = ['--isolation', 'chroot', '--format', 'docker', '--no-cache', '--pull-never', '--timestamp', '0'];
  const build = (tag: string) => {
    const revision = ['--build-arg', `REVISION=${REVISION}`];
    buildah('bud', '--quiet', ...options, ...mounts, ...revision, '--tag', tag, REPOSITORY);
    return JSON.parse(buildah('inspect', '--type', 'image', tag));
  };
  const [one, other] = [build('one'), build('other')];
  const container = buildah('from', '--pull-never', 'one');
  const root = buildah('mount', container);
  return {
    root,
    layers: [one.OCIv1.rootfs.diff_ids, other.OCIv1.rootfs.diff_ids],
    bytes: Number(run('du', ['--summarize', '--bytes', root]).split('\t')[0]),
    config: one.OCIv1.config,
    healthCheck: one.Docker.config.Healthcheck.Test.slice(1),
  };
}

/** Makes an image of the name that the Dockerfile begins with: Debian, and Node.js and npm where that image has them. */
function makeBase(work: string, buildah: (command: string, ...args: string[]) => string): void {
  const npm = join(work, 'npm');
  cpSync(dirname(dirname(realpathSync(onPath(['npm'], process.env) ?? 'npm'))), npm, { recursive: true });
  const container = buildah('from', 'scratch');
  buildah('add', '--quiet', container, join(work, 'debian.tar'), '/');
  buildah('copy', '--quiet', container, realpathSync(process.execPath), '/usr/local/bin/node');
  buildah('copy', '--quiet', container, npm, '/usr/local/lib/node_modules/npm');
  const link = ['ln', '-s', '../lib/node_modules/npm/bin/npm-cli.js', '/usr/local/bin/npm'];
  buildah('run', '--isolation', 'chroot', container, '--', ...link);
  buildah('config', '--env', 'PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', container);
  buildah('commit', '--quiet', '--rm', container, `docker.io/library/${BASE_IMAGE}`);
}

function run(program: string, args: readonly string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}
