/**
 * As much of the Dockerfile as the tests need to run its commands as processes, on the files that it copies. It is read by
 * pattern: building it takes root, a base image and about a minute, too much for `npm test`.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

export const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url));

const COMMAND = z.array(z.string());

/** The Dockerfile with each instruction on one line. */
export const DOCKERFILE = readFileSync(join(REPOSITORY, 'Dockerfile'), 'utf8').replaceAll('\\\n', ' ');
/** The stage that becomes the image. */
export const LAST_STAGE = DOCKERFILE.slice(DOCKERFILE.lastIndexOf('\nFROM '));

/** Returns the value of an instruction. @throws Error unless there is exactly one. */
export function readInstruction(name: string): string {
  const [value, ...more] = [...DOCKERFILE.matchAll(new RegExp(`^${name} +(.*)$`, 'gm'))].map(([, text]) => text);
  if (value === undefined || more.length > 0) throw new Error(`the Dockerfile has not exactly one ${name}`);
  return value;
}

/** Returns the command of ENTRYPOINT, CMD or HEALTHCHECK. @throws Error unless it is in exec form: no shell gets the signals. */
export function readCommand(instruction: string): string[] {
  const value = readInstruction(instruction);
  return COMMAND.parse(JSON.parse(value.slice(value.indexOf('['))));
}

/** Returns the paths that these instructions copy from the repository. */
export function readCopiedPaths(instructions: string): string[] {
  return [...instructions.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, sources = '']) => sources.split(' '));
}

/** Copies the files of the image into `folder`; node_modules as npm lists the packages that are neither dev nor optional. */
export function layOutImage(folder: string): void {
  const list = ['ls', '--omit=dev', '--omit=optional', '--all', '--parseable'];
  const [, ...packages] = execFileSync('npm', list, { cwd: REPOSITORY, encoding: 'utf8' }).trim().split('\n');
  for (const path of [...packages.map((each) => relative(REPOSITORY, each)), ...readCopiedPaths(LAST_STAGE)]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    const isNested = (file: string) => relative(join(REPOSITORY, path), file).startsWith('node_modules');
    cpSync(join(REPOSITORY, path), join(folder, path), { recursive: true, filter: (file) => !isNested(file) });
  }
}
