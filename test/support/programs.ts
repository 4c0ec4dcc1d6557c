/** Programs that tests run and no npm package brings. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface DebianPackage {
  readonly name: string;
  /** Service that comes with it, if any, and must not be started: the default port is not ours. */
  readonly service?: string;
}

/** The path of the first of these names that is on PATH. */
export function onPath(names: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
}

export function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export function canInstall(): boolean {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version');
}

/** Installs a package without starting the service that comes with it. */
export function install({ name, service }: DebianPackage, env: NodeJS.ProcessEnv): void {
  const options = { stdio: 'inherit', env: { ...env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' } } as const;
  // RUNLEVEL=1 keeps a start script from starting it, the mask (gone with the next boot) a service manager.
  if (service !== undefined && existsSync('/run/systemd/system'))
    spawnSync('systemctl', ['mask', '--runtime', service], options);
  spawnSync('apt-get', ['update'], options);
  // Another run may be installing something.
  const patience = ['-o', 'DPkg::Lock::Timeout=120'];
  spawnSync('apt-get', ['install', '-y', '--no-install-recommends', ...patience, name], options);
}
