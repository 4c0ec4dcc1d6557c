/**
 * A certificate that follows its files. The folders are watched, because a file that is replaced is another one
 * (Kubernetes swaps a link beside it), and the files are read now and then all the same, because not every file system
 * tells of changes. What cannot be used changes nothing: the last good one stays, and whoever runs this is told once.
 */
import { createHash } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Scheduled, Scheduler } from '../clock.ts';
import { type Certificate, checkCertificate } from './certificate.ts';
import type { TlsKeys } from './tls-options.ts';

export interface WatchedCertificateOptions {
  readonly certFile: string;
  readonly keyFile: string;
  readonly scheduler: Scheduler;
  /** How often the files are read without a sign of change. */
  readonly pollMs?: number;
  /** Called for the first pair, and for each that takes the place of another. */
  used(expiresAtMs: number): void;
  /** Called when a new pair has taken the place of another. */
  changed(): void;
  /** Called once for each new content that cannot be used; `fault` says what and in which file, in words. */
  refused(fault: string): void;
}

type Pair = Extract<Certificate, { kind: 'usable' }> | { readonly kind: 'invalid'; readonly fault: string };

const POLL_MS = 60_000;
/** Certificate and key are two files, and whoever replaces them may write one after the other. */
const SETTLE_MS = 200;

export class WatchedCertificate {
  readonly #options: WatchedCertificateOptions;
  readonly #watchers: FSWatcher[] = [];
  /** What was seen last, whether it could be used or not. */
  #seen: string | undefined;
  #look: Scheduled | undefined;
  #isReading = true;
  /** The folders have changed since the last reading began. */
  #hasChanged = false;
  #use: (keys: TlsKeys) => void = () => {};
  #isClosed = false;

  constructor(options: WatchedCertificateOptions) {
    this.#options = options;
  }

  /**
   * Reads the pair for the first time, and follows it from then on: `use` gets each new one.
   * @throws Error when it cannot be used; the message says why.
   */
  async start(use: (keys: TlsKeys) => void): Promise<TlsKeys> {
    const { certFile, keyFile } = this.#options;
    // Watched before they are read: a change in between would go unnoticed until the next regular look.
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
      // The system has no more watches to give: the regular look is left.
    }
  }

  /** Further changes don't postpone the look that the first one asked for: the folder may be one that is always busy. */
  #noteChange(): void {
    if (this.#hasChanged) return;
    this.#hasChanged = true;
    if (!this.#isReading) this.#lookAfter(SETTLE_MS);
  }

  /** After a reading: soon, when something changed meanwhile, of which the reading may have seen a part or nothing. */
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
