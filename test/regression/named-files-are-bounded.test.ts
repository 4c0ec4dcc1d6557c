/**
 * A configuration that names `/dev/zero` as a secret's file was read into memory without end, and opening a pipe waited
 * for a writer for ever and kept the process from ending.
 */
import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { load, MINIMAL, problemsOf, withFolder } from '../config/support.ts';

const naming = (file: string) => `${MINIMAL}admin: { token_file: ${file} }`;

it.each([
  ['a device', '/dev/zero', 'it is not a regular file'],
  ['a folder', '/proc/self', 'it is a folder'],
])('%s is refused as the file of a secret', async (_, file, reason) => {
  expect(await problemsOf(naming(file))).toEqual([expect.stringContaining(`the file cannot be read: ${reason}`)]);
});

test('a pipe, and a file of more than a mebibyte, are refused; a link to a file is followed', async () => {
  await withFolder({ token: 'the-token-of-this-test', large: 'x'.repeat(1024 * 1024 + 1) }, async (folder) => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    expect(await problemsOf(naming(pipe))).toEqual([expect.stringContaining('it is not a regular file')]);
    expect(await problemsOf(naming(join(folder, 'large')))).toEqual([
      expect.stringContaining('it is larger than 1024 KiB'),
    ]);
    symlinkSync(join(folder, 'token'), join(folder, 'link'));
    expect((await load(naming(join(folder, 'link')))).admin?.token).toBe('the-token-of-this-test');
  });
});

test('a configuration file without end is refused', async () => {
  await expect(loadConfig('/dev/zero', {})).rejects.toThrow('/dev/zero: cannot be read: it is larger than 4096 KiB');
});
