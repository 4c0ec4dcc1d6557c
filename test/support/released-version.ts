/** The last released version, as its users run it: its files at the commit of the release, with this checkout's packages. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface ReleasedVersion {
  readonly version: string;
  /** Its start file. */
  readonly program: string;
  remove(): void;
}

/** Returns the commit of the release; undefined where the history is not here: no repository, or a shallow clone. */
export function commitOf(version: string): string | undefined {
  try {
    return (
      git('log', '-1', '--format=%H', `--grep=^chore: release ${version.replaceAll('.', '[.]')}$`)
        .toString()
        .trim() || undefined
    );
  } catch {
    return undefined;
  }
}

export function unpackReleased(version: string, commit: string): ReleasedVersion {
  const folder = mkdtempSync(join(tmpdir(), `tollgate-${version}-`));
  execFileSync('tar', ['-x', '-C', folder], { input: git('archive', commit, 'src', 'package.json') });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return {
    version,
    program: join(folder, 'src/main.ts'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function git(...args: string[]): Buffer {
  return execFileSync('git', args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 2 ** 28 });
}
