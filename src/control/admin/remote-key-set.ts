/**
 * The public keys of a JWT issuer, in memory and reloaded from its URL (RFC 7517 §5).
 *
 * - The keys are loaded at start and then every REFRESH_MS in the background, so a withdrawn key is dropped by then;
 *   after a failure every RETRY_MS.
 * - While the URL is unavailable, the last key set stays in use until STALE_MS after its request. After that no token
 *   can be verified, which is not a refusal of the token.
 * - A token with an unknown key triggers a reload, at most one per COOLDOWN_MS for all tokens together.
 *
 * docs/dev/decisions/0009-what-the-chosen-libraries-do.md says why jose does not load the keys.
 */
import http from 'node:http';
import https from 'node:https';
import { type CryptoKey, createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { boundResponse, responseTo } from '../../base/bounded-response.ts';
import type { Clock, Scheduler } from '../../base/clock.ts';
import { JoinedBytes } from '../../base/joined-bytes.ts';
import { Periodic } from '../../base/periodic.ts';
import type { Logger } from '../../observability/logger.ts';

const REFRESH_MS = 300_000;
const RETRY_MS = 10_000;
const STALE_MS = 3_600_000;
const COOLDOWN_MS = 5000;
const TIMEOUT_MS = 5000;
/** Of the whole response. Key sets with certificate chains take some tens of kilobytes. */
const MAX_BYTES = 262_144;

/** A token cannot be verified: there are no keys, they are stale, or a new key may be missing. */
export class KeySetUnavailableError extends Error {
  override readonly name = 'KeySetUnavailableError';
}

interface RemoteKeySetOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly scheduler: Pick<Scheduler, 'after'>;
  readonly logger: Logger;
}

type LocalKeySet = ReturnType<typeof createLocalJWKSet>;

export class RemoteKeySet {
  readonly #options: RemoteKeySetOptions;
  readonly #closing = new AbortController();
  /** `requestedAtMs`: monotonic. */
  #loaded: { readonly keys: LocalKeySet; readonly requestedAtMs: number } | undefined;
  readonly #loading: Periodic;
  /** Time of the last load, successful or not. Monotonic. */
  #requestedAtMs = Number.NEGATIVE_INFINITY;
  #failing = false;

  constructor(options: RemoteKeySetOptions) {
    this.#options = options;
    this.#loading = new Periodic(options.scheduler, () => this.#load());
  }

  /** Starts loading the keys, now and periodically, without waiting for them. */
  start(): void {
    void this.#loading.run();
  }

  /**
   * Returns the key for a token's header, as jose's verify functions take it. Rejects with jose's JWKSNoMatchingKey
   * when the issuer has no such key, and with {@link KeySetUnavailableError} when that is unknown.
   */
  readonly keyFor: JWTVerifyGetKey<CryptoKey> = async (header, token) => {
    if (this.#usable === undefined) await this.#loadUnlessCoolingDown();
    try {
      return await this.#require()(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    await this.#loadUnlessCoolingDown();
    if (this.#failing)
      throw new KeySetUnavailableError('the key is unknown, and the key set that may have it cannot be loaded');
    return await this.#require()(header, token);
  };

  close(): void {
    this.#closing.abort();
    void this.#loading.close();
  }

  get #usable(): LocalKeySet | undefined {
    const loaded = this.#loaded;
    return loaded && this.#options.clock.monotonicMs() - loaded.requestedAtMs < STALE_MS ? loaded.keys : undefined;
  }

  #require(): LocalKeySet {
    if (this.#usable === undefined) throw new KeySetUnavailableError('no key set was loaded, or the last one is stale');
    return this.#usable;
  }

  async #loadUnlessCoolingDown(): Promise<void> {
    const isDue = this.#options.clock.monotonicMs() - this.#requestedAtMs >= COOLDOWN_MS;
    if (this.#loading.running || isDue) await this.#loading.run();
  }

  /** Resolves to the ms until the next load. Never rejects. */
  async #load(): Promise<number> {
    const { url, clock, logger } = this.#options;
    const { signal } = this.#closing;
    this.#requestedAtMs = clock.monotonicMs();
    try {
      const keys = createLocalJWKSet(await fetchKeySet(url, signal));
      this.#loaded = { keys, requestedAtMs: this.#requestedAtMs };
      if (this.#failing) logger.info('the keys of admin.jwt.jwks_url are loaded again');
      this.#failing = false;
    } catch (error) {
      const facts = { err: error, accepted_for_seconds: this.#secondsUntilStale() };
      if (!this.#failing && !signal.aborted) logger.error(facts, 'the keys of admin.jwt.jwks_url cannot be loaded');
      this.#failing = true;
    }
    return this.#failing ? RETRY_MS : REFRESH_MS;
  }

  /** How long JWTs stay accepted if every further load fails. */
  #secondsUntilStale(): number {
    const ageMs = this.#loaded ? this.#options.clock.monotonicMs() - this.#loaded.requestedAtMs : STALE_MS;
    return Math.max(0, Math.floor((STALE_MS - ageMs) / 1000));
  }
}

async function fetchKeySet(url: string, closing: AbortSignal): Promise<JSONWebKeySet> {
  const signal = AbortSignal.any([closing, AbortSignal.timeout(TIMEOUT_MS)]);
  // No redirect is followed: only the configured URL is trusted to publish keys.
  const request = (url.startsWith('https:') ? https : http).get(url, {
    headers: { Accept: 'application/jwk-set+json, application/json', 'User-Agent': 'tollgate' },
    signal,
  });
  boundResponse(request, MAX_BYTES);
  try {
    const response = await responseTo(request);
    if (response.statusCode !== 200) throw new Error(`the response has status ${response.statusCode}`);
    const content = new JoinedBytes();
    for await (const piece of response) content.add(piece);
    return JSON.parse(Buffer.concat(content.take()).toString('utf8'));
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    request.destroy();
  }
}
