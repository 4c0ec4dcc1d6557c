/** The Dockerfile as data, and what the image would hold, laid out in a folder. */
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

export const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url));

export interface Instruction {
  readonly name: string;
  readonly value: string;
}

const COMMAND = z.array(z.string());

/** The instructions of each stage, its FROM first; comments and line continuations are gone. */
export function readStages(): Instruction[][] {
  const lines = readFileSync(join(REPOSITORY, 'Dockerfile'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .join('\n')
    .replaceAll('\\\n', ' ')
    .split('\n');
  const stages: Instruction[][] = [];
  for (const line of lines) {
    const [, name = '', value = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (name === 'FROM') stages.push([]);
    stages.at(-1)?.push({ name, value });
  }
  return stages;
}

/** Of the last stage, which is the image. @throws Error unless there is exactly one. */
export function readInstruction(name: string): string {
  const [found, ...more] = (readStages().at(-1) ?? []).filter((each) => each.name === name);
  if (found === undefined || more.length > 0) throw new Error(`the image has not exactly one ${name}`);
  return found.value;
}

/** A command in its exec form: no shell takes the signals. @throws Error when it has another. */
export function readCommand(instruction: string): string[] {
  return COMMAND.parse(JSON.parse(instruction));
}

/** Copies what the last stage copies into `folder`, node_modules by the lock file: what is neither dev nor optional. */
export function layOutImage(folder: string): void {
  for (const { value } of (readStages().at(-1) ?? []).filter(({ name }) => name === 'COPY')) {
    if (value.startsWith('--from=dependencies')) {
      for (const path of productionPackages()) copy(path, folder);
      continue;
    }
    const sources = value.split(/\s+/);
    const target = sources.pop() ?? '';
    for (const source of sources) {
      const to = target.endsWith('/') ? join(target, source.split('/').at(-1) ?? '') : target;
      cpSync(join(REPOSITORY, source), join(folder, to), { recursive: true });
    }
  }
}

function copy(path: string, folder: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  const isNested = (name: string) => name.slice(join(REPOSITORY, path).length).includes('/node_modules');
  cpSync(join(REPOSITORY, path), join(folder, path), { recursive: true, filter: (name) => !isNested(name) });
}

const LOCK = z.object({
  packages: z.record(
    z.string(),
    z.object({ dev: z.boolean(), optional: z.boolean(), devOptional: z.boolean() }).partial(),
  ),
});

/** Paths of the packages that `npm ci --omit=dev --omit=optional` installs. */
export function productionPackages(): string[] {
  const { packages } = LOCK.parse(JSON.parse(readFileSync(join(REPOSITORY, 'package-lock.json'), 'utf8')));
  return Object.entries(packages)
    .filter(([path, { dev, optional, devOptional }]) => path !== '' && !dev && !optional && !devOptional)
    .map(([path]) => path);
}
