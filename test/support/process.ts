/** The program as its users run it: a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { CHILD_ENVIRONMENT } from './child-environment.ts';
import { closeAtEnd } from './cleanup.ts';
import { eventually } from './eventually.ts';
import { traceEnvironment } from './traces/environment.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const QUICK_START = fileURLToPath(new URL('../../demo/start.js', import.meta.url));
const ANY_PORTS = { PORT: '0', OPS_PORT: '0', ADMIN_PORT: '0', PORTAL_PORT: '0' };
const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));

export interface ProcessSettings {
  readonly args: readonly string[];
  /** The whole environment of the process, but for what finding programs needs. */
  readonly env?: Readonly<Record<string, string>>;
  /** The start file. Left out: of this version. */
  readonly program?: string;
}

export interface Finished {
  /** Undefined when a signal ended the process. */
  readonly status: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningGateway {
  readonly pid: number;
  readonly public: string;
  readonly ops: string;
  readonly admin: string | undefined;
  readonly portal: string | undefined;
  readonly check: string | undefined;
  /** Standard output so far. */
  output(): string;
  /** Where it is read; what reads a log may pause, or be gone. */
  readonly stdout: Readable;
  signal(name: NodeJS.Signals): void;
  /** Resolves when the process has ended and all its output is here. */
  finished: Promise<Finished>;
}

/** Runs one command to its end. */
export async function runProgram(settings: ProcessSettings): Promise<Finished> {
  return launch(settings, settings.program).finished;
}

/** Starts `start` with the given arguments and waits until the gateway says that it runs. Killed by {@link closeAtEnd}. */
export async function startProgram({ args, env, program }: ProcessSettings): Promise<RunningGateway> {
  return await untilStarted(launch({ args: ['start', ...args], ...(env && { env }) }, program));
}

/** Runs what `npm start` runs, until it has printed what to try. Killed by {@link closeAtEnd}. */
export async function startQuickStart(env: Readonly<Record<string, string>> = {}): Promise<RunningGateway> {
  return await untilBanner(
    launch({ args: [], env: { ...ANY_PORTS, TMPDIR: await temporaryFolder(), ...env } }, QUICK_START),
  );
}

/** Runs `try` with the given arguments until it has printed what to try. Killed by {@link closeAtEnd}. */
export async function startTry(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<RunningGateway> {
  return await untilBanner(launch({ args: ['try', ...args], env: { TMPDIR: await temporaryFolder(), ...env } }));
}

/** A folder for what a killed program leaves behind. Deleted when the test ends. */
async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-process-'));
  closeAtEnd(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function untilBanner(program: ReturnType<typeof launch>): Promise<RunningGateway> {
  const gateway = await untilStarted(program);
  await eventually('the banner is complete', () => gateway.output().includes('Ctrl-C stops it.'));
  return gateway;
}

async function untilStarted({ child, finished, output, sawLine }: ReturnType<typeof launch>): Promise<RunningGateway> {
  const started = await Promise.race([sawLine('tollgate started'), finished]);
  if ('stderr' in started) throw new Error(`the gateway ended: ${started.stderr}`);
  if (child.pid === undefined) throw new Error('the gateway has no process');
  return {
    pid: child.pid,
    public: String(started.public),
    ops: String(started.ops),
    admin: started.admin === undefined ? undefined : String(started.admin),
    portal: started.portal === undefined ? undefined : String(started.portal),
    check: started.check === undefined ? undefined : String(started.check),
    output,
    stdout: child.stdout,
    signal: (name) => void child.kill(name),
    finished,
  };
}

function launch({ args, env = {} }: ProcessSettings, program = MAIN) {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: REPOSITORY,
    env: { ...CHILD_ENVIRONMENT, ...traceEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  closeAtEnd(() => end(child));
  let stdout = '';
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  const finished = once(child, 'close').then(
    ([status]: (number | null)[]): Finished => ({ status: status ?? undefined, stdout, stderr }),
  );
  /** The first complete log line with this message, parsed. */
  const sawLine = (msg: string) =>
    new Promise<Record<string, unknown>>((resolve) => {
      const look = () => {
        const line = stdout
          .split('\n')
          .slice(0, -1)
          .find((each) => each.startsWith('{') && each.includes(`"msg":"${msg}"`));
        if (line === undefined) return;
        child.stdout.off('data', look);
        resolve(JSON.parse(line));
      };
      child.stdout.on('data', look);
    });
  return { child, finished, output: () => stdout, sawLine };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
