import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { staleParts } from '../../scripts/guarantees.ts';

/** A repository with one commit. */
function startRepository() {
  const root = mkdtempSync(join(tmpdir(), 'tollgate-evidence-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@localhost', ...args], {
      cwd: root,
      encoding: 'utf8',
    }).trim();
  const commit = (file: string, text: string) => {
    writeFileSync(join(root, file), text);
    git('add', '.');
    git('commit', '-q', '-m', file);
    return git('rev-parse', '--short', 'HEAD');
  };
  git('init', '-q');
  for (const folder of ['src/customers/quota', 'src/edge']) mkdirSync(join(root, folder), { recursive: true });
  return { root, commit };
}

const ran = (commit: string) => ({ model: { date: '2030-01-01', version: '1.0.0', commit } });

test('evidence is stale once the quota has changed since its commit, and not by other changes', () => {
  const { root, commit } = startRepository();
  const first = commit('src/customers/quota/leases.ts', 'one');
  commit('src/edge/app.ts', 'one');
  expect(staleParts(ran(first), root)).toEqual([]);
  commit('src/customers/quota/leases.ts', 'two');
  expect(staleParts(ran(first), root)).toEqual(['model']);
});

test('nothing is said of evidence whose commit git does not know', () => {
  const { root, commit } = startRepository();
  commit('src/customers/quota/leases.ts', 'one');
  expect(staleParts(ran('0123456789'), root)).toEqual([]);
  expect(staleParts({ model: { date: '2030-01-01', version: '1.0.0' } }, root)).toEqual([]);
});
