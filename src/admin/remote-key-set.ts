/**
 * The public keys of an issuer of JWTs, in memory and reloaded from its address (RFC 7517 §5).
 *
 * - They are loaded at start and again every REFRESH_MS, in the background, so that a key the issuer withdraws is gone by
 *   then, and after a failure every RETRY_MS.
 * - While the address is away the last good set goes on, until STALE_MS after it was asked for. Then nothing can be said
 *   about any token, which is not the same as refusing it.
 * - A token whose key is not in the set has it loaded anew, at most once every COOLDOWN_MS, whoever asks and however often.
 */
import { type CryptoKey, createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Clock, Scheduled, Scheduler } from '../clock.ts';
import type { Logger } from '../observability/logger.ts';

const REFRESH_MS = 300_000;
const RETRY_MS = 10_000;
const STALE_MS = 3_600_000;
const COOLDOWN_MS = 5000;
const TIMEOUT_MS = 5000;
/** The largest sets in use, with certificate chains, have some tens of kilobytes. */
const MOST_BYTES = 262_144;

/** Whether a token is good cannot be said: there are no keys, or they are too old, or may lack one. */
export class KeySetUnavailableError extends Error {
  override readonly name = 'KeySetUnavailableError';
}

export interface RemoteKeySetOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly scheduler: Pick<Scheduler, 'after'>;
  readonly logger: Logger;
}

type LocalKeySet = ReturnType<typeof createLocalJWKSet>;

export class RemoteKeySet {
  readonly #options: RemoteKeySetOptions;
  readonly #closing = new AbortController();
  #loaded: { readonly keys: LocalKeySet /** Monotonic, before the request. */; readonly atMs: number } | undefined;
  #underWay: Promise<void> | undefined;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #failing = false;
  #next: Scheduled | undefined;

  constructor(options: RemoteKeySetOptions) {
    this.#options = options;
  }

  /** Begins to load the keys, now and from time to time; does not wait for them. */
  start(): void {
    void this.#load();
  }

  /**
   * The key for a token's header, as jose asks for it. Rejects with jose's JWKSNoMatchingKey when the issuer has none,
   * with {@link KeySetUnavailableError} when that is not known.
   */
  readonly keyFor: JWTVerifyGetKey<CryptoKey> = async (header, token) => {
    if (this.#usable === undefined) await this.#loadUnlessJustDone();
    try {
      return await this.#require()(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    await this.#loadUnlessJustDone();
    if (this.#failing) throw new KeySetUnavailableError('the key is not known, and may be a new one');
    return await this.#require()(header, token);
  };

  close(): void {
    this.#closing.abort();
    this.#next?.cancel();
  }

  get #usable(): LocalKeySet | undefined {
    const loaded = this.#loaded;
    return loaded && this.#options.clock.monotonicMs() - loaded.atMs < STALE_MS ? loaded.keys : undefined;
  }

  #require(): LocalKeySet {
    if (this.#usable === undefined) throw new KeySetUnavailableError('the keys are not there, or too old');
    return this.#usable;
  }

  async #loadUnlessJustDone(): Promise<void> {
    const isDue = this.#options.clock.monotonicMs() - this.#askedAtMs >= COOLDOWN_MS;
    if (this.#underWay !== undefined || isDue) await this.#load();
  }

  /** Never rejects. */
  #load(): Promise<void> {
    this.#underWay ??= this.#ask().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #ask(): Promise<void> {
    const { url, clock, logger, scheduler } = this.#options;
    const { signal } = this.#closing;
    this.#next?.cancel();
    this.#askedAtMs = clock.monotonicMs();
    try {
      const keys = createLocalJWKSet(await fetchKeySet(url, signal));
      this.#loaded = { keys, atMs: this.#askedAtMs };
      if (this.#failing) logger.info('the keys of admin.jwt.jwks_url are loaded again');
      this.#failing = false;
    } catch (error) {
      const facts = { err: error, accepted_for_seconds: this.#lastingSeconds() };
      if (!this.#failing && !signal.aborted) logger.error(facts, 'the keys of admin.jwt.jwks_url cannot be loaded');
      this.#failing = true;
    }
    if (signal.aborted) return;
    this.#next = scheduler.after(this.#failing ? RETRY_MS : REFRESH_MS, () => void this.#load());
  }

  /** How long JWTs go on being accepted without another load. */
  #lastingSeconds(): number {
    const ageMs = this.#loaded ? this.#options.clock.monotonicMs() - this.#loaded.atMs : STALE_MS;
    return Math.max(0, Math.floor((STALE_MS - ageMs) / 1000));
  }
}

async function fetchKeySet(url: string, closing: AbortSignal): Promise<JSONWebKeySet> {
  const response = await fetch(url, {
    headers: { Accept: 'application/jwk-set+json, application/json' },
    // Only the configured address is known to be one that may say whom to trust.
    redirect: 'error',
    signal: AbortSignal.any([closing, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the address answers with status ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new Error(`the answer has more than ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}
