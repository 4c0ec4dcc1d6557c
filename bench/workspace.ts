/**
 * A temporary folder and the processes that work in it. All of it goes with the workspace, and at the latest when the
 * benchmark ends, by Ctrl-C too.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

export interface ProcessSettings {
  /** For messages, and the names of its output files. */
  readonly name: string;
  /** Program and arguments. */
  readonly command: readonly [string, ...string[]];
  /** Besides PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Left out: the workspace's own folder. */
  readonly cwd?: string;
  /** What ends it and its children; left out: SIGKILL. */
  readonly endSignal?: NodeJS.Signals;
  /** Whether it does its job yet; asked until it does. */
  readonly isReady: () => Promise<boolean>;
}

export interface RunningProcess {
  readonly name: string;
  readonly pid: number;
}

const START_DEADLINE_MS = 20_000;
const POLL_MS = 20;
const TAIL_LINES = 15;
const ENDING_SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

export class Workspace {
  readonly folder: string;
  /** Of every process. */
  readonly #env: Readonly<Record<string, string>>;
  readonly #children = new Map<ChildProcess, NodeJS.Signals>();
  readonly #clearAtOnce = () => {
    for (const child of this.#children.keys()) endGroup(child, 'SIGKILL');
    this.#removeFolder();
  };

  /** `path`: where the processes find programs. `env`: what else is in the environment of each. */
  constructor(path: string | undefined, env: Readonly<Record<string, string>> = {}) {
    this.#env = { ...(path !== undefined && { PATH: path }), ...env };
    this.folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
    // nginx, started by root, runs its workers as another user.
    chmodSync(this.folder, 0o755);
    mkdirSync(join(this.folder, 'temp'));
    process.once('exit', this.#clearAtOnce);
  }

  /**
   * Starts a process whose output goes into files here, and waits until it is ready.
   * @throws Error with the end of what it wrote, when it ends or does not get ready.
   */
  async start(settings: ProcessSettings): Promise<RunningProcess> {
    const { name, command, env = {}, cwd = this.folder, endSignal = 'SIGKILL', isReady } = settings;
    const [program, ...args] = command;
    const outputs = [`${name}.out`, `${name}.err`].map((file) => openSync(join(this.folder, file), 'a'));
    const child = spawn(program, args, {
      cwd,
      env: { ...this.#env, ...env },
      stdio: ['ignore', ...outputs],
      // A process group of its own: Ctrl-C reaches the benchmark alone, and one signal ends a server with its workers.
      detached: true,
    });
    for (const output of outputs) closeSync(output);
    this.#children.set(child, endSignal);
    let ended: string | undefined;
    child.once('error', (error) => {
      this.#children.delete(child);
      ended = error.message;
    });
    child.once('exit', (status, signal) => {
      this.#children.delete(child);
      ended ??= `ended with ${signal ?? `status ${status}`}`;
    });
    const deadlineMs = performance.now() + START_DEADLINE_MS;
    while (!(await isReady())) {
      if (performance.now() > deadlineMs) ended ??= `not ready after ${START_DEADLINE_MS / 1000} s`;
      if (ended !== undefined) throw new Error(`${name} did not start: ${ended}\n${this.#outputTail(name)}`);
      await setTimeout(POLL_MS);
    }
    if (child.pid === undefined) throw new Error(`${name} did not start`);
    return { name, pid: child.pid };
  }

  /** Ends every process, waits for that, and removes the folder. */
  async close(): Promise<void> {
    const exits = [...this.#children.keys()].map((child) => once(child, 'exit'));
    for (const [child, signal] of this.#children) endGroup(child, signal);
    await Promise.all(exits);
    process.off('exit', this.#clearAtOnce);
    this.#removeFolder();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #removeFolder(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #outputTail(name: string): string {
    const text = ['out', 'err'].map((kind) => readFileSync(join(this.folder, `${name}.${kind}`), 'utf8')).join('');
    return text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
  }
}

/** Makes signals end the process by way of `exit`, so that every workspace is cleared. */
export function exitOnSignals(): void {
  for (const [signal, status] of Object.entries(ENDING_SIGNALS)) process.once(signal, () => process.exit(status));
}

function endGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
