/**
 * A certificate that is reloaded when its files change. The folders are watched, not the files: replacing a file
 * creates another one (Kubernetes swaps a symbolic link beside it). The files are also polled, because not every file
 * system reports changes. If the new content is not usable, the last good certificate stays in use; the operator is
 * told once.
 */
import { createHash } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Scheduled, Scheduler } from '../base/clock.ts';
import { type Certificate, checkCertificate } from './certificate.ts';
import type { TlsKeys } from './tls-options.ts';

export interface WatchedCertificateOptions {
  readonly certFile: string;
  readonly keyFile: string;
  readonly scheduler: Scheduler;
  /** How often the files are read if no change is reported. */
  readonly pollMs?: number;
  /** Called for the first pair and for each replacement. */
  used(expiresAtMs: number): void;
  /** Called when a new pair has replaced the last one. */
  changed(): void;
  /** Called once for each new content that cannot be used; `fault` names the file and the problem. */
  refused(fault: string): void;
}

type Pair = Extract<Certificate, { kind: 'usable' }> | { readonly kind: 'invalid'; readonly fault: string };

const POLL_MS = 60_000;
/** Wait after a change: certificate and key are two files, which may be written one after the other. */
const SETTLE_MS = 200;

export class WatchedCertificate {
  readonly #options: WatchedCertificateOptions;
  readonly #watchers: FSWatcher[] = [];
  /** Hash of the contents seen last, usable or not; the fault if a file could not be read. */
  #seen: string | undefined;
  #look: Scheduled | undefined;
  #isReading = true;
  /** Whether the folders have changed since the last read began. */
  #hasChanged = false;
  #use: (keys: TlsKeys) => void = () => {};
  #isClosed = false;

  constructor(options: WatchedCertificateOptions) {
    this.#options = options;
  }

  /**
   * Reads the pair for the first time, then watches it: `use` gets each new pair.
   * @throws Error if the pair cannot be used; the message says why.
   */
  async start(use: (keys: TlsKeys) => void): Promise<TlsKeys> {
    const { certFile, keyFile } = this.#options;
    // Watch before reading: a change in between would go unnoticed until the next poll.
    for (const folder of new Set([dirname(certFile), dirname(keyFile)])) this.#watch(folder);
    const { content, result } = await this.#read();
    if (result.kind === 'invalid') {
      this.close();
      throw new Error(`the certificate cannot be used: ${result.fault}`);
    }
    this.#seen = content;
    this.#use = use;
    this.#lookAgain();
    this.#options.used(result.expiresAtMs);
    return result.keys;
  }

  close(): void {
    this.#isClosed = true;
    this.#look?.cancel();
    for (const watcher of this.#watchers) watcher.close();
  }

  #watch(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#noteChange());
      watcher.on('error', () => watcher.close());
      this.#watchers.push(watcher);
    } catch {
      // Watching failed, for example at the system's limit of watches: polling remains.
    }
  }

  /** Further changes do not postpone the read that the first one scheduled: the folder may change all the time. */
  #noteChange(): void {
    if (this.#hasChanged) return;
    this.#hasChanged = true;
    if (!this.#isReading) this.#lookAfter(SETTLE_MS);
  }

  /**
   * Schedules the next read: soon if a change happened during the last one, which may have missed some or all of it.
   */
  #lookAgain(): void {
    this.#isReading = false;
    this.#lookAfter(this.#hasChanged ? SETTLE_MS : (this.#options.pollMs ?? POLL_MS));
  }

  #lookAfter(delayMs: number): void {
    if (this.#isClosed) return;
    this.#look?.cancel();
    this.#look = this.#options.scheduler.after(delayMs, () => {
      this.#lookNow().finally(() => this.#lookAgain());
    });
  }

  async #lookNow(): Promise<void> {
    this.#isReading = true;
    this.#hasChanged = false;
    const { content, result } = await this.#read();
    if (this.#isClosed || content === this.#seen) return;
    this.#seen = content;
    if (result.kind === 'invalid') {
      this.#options.refused(result.fault);
      return;
    }
    this.#use(result.keys);
    this.#options.changed();
    this.#options.used(result.expiresAtMs);
  }

  async #read(): Promise<{ content: string; result: Pair }> {
    const { certFile, keyFile } = this.#options;
    const texts: string[] = [];
    for (const file of [certFile, keyFile]) {
      try {
        texts.push(await readFile(file, 'utf8'));
      } catch (error) {
        const fault = `${file} cannot be read (${error instanceof Error && 'code' in error ? error.code : 'unknown'})`;
        return { content: fault, result: { kind: 'invalid', fault } };
      }
    }
    const [cert = '', key = ''] = texts;
    const checked = checkCertificate(cert, key);
    const content = createHash('sha256').update(`${cert}\0${key}`).digest('hex');
    if (checked.kind === 'usable') return { content, result: checked };
    const file = checked.at === 'cert' ? certFile : keyFile;
    return { content, result: { kind: 'invalid', fault: `${file} ${checked.fault}` } };
  }
}
