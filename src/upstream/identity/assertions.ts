/**
 * Signed statements of who the client is, for the backend: JWTs that it can verify without trusting the network.
 *
 * A signature costs about as much as the rest of a request, so a JWT is signed per customer, plan, key and audience, and reused.
 * After half of its lifetime, the next request still uses it and starts signing a new one. After three quarters,
 * requests wait for the new one, so that the backend always gets a JWT with at least a quarter of its lifetime left.
 *
 * Ages are wall time, as the claims are. A JWT that was signed at a later time than the clock shows now is not used.
 */
import { SignJWT } from 'jose';
import type { Clock } from '../../base/clock.ts';
import { LruMap } from '../../base/lru-map.ts';
import { ALGORITHM, type SigningKeys } from './signing-keys.ts';

/** Shares of the lifetime after which a JWT is replaced, and after which it is no longer used. */
const REFRESH_FROM = 1 / 2;
const LATEST_USE = 3 / 4;

interface AssertionsOptions {
  readonly keys: Pick<SigningKeys, 'privateKey' | 'kid'>;
  readonly issuer: string;
  readonly ttlSeconds: number;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Most JWTs that are kept; the least recently used is evicted. */
  readonly entries: number;
}

interface Assertion {
  readonly jwt: string;
  readonly signedAtMs: number;
}

export class Assertions {
  readonly #options: AssertionsOptions;
  readonly #assertions: LruMap<string, Assertion>;
  readonly #signings = new Map<string, Promise<string>>();

  constructor(options: AssertionsOptions) {
    this.#options = options;
    this.#assertions = new LruMap(options.entries);
  }

  /**
   * Returns a JWT in compact form for the backend that `audience` names; a promise only if it must be signed first. If it rejects, that is an internal error:
   * the request is neither sent nor counted.
   */
  of(customer: string, plan: string, keyId: string, audience: string): string | Promise<string> {
    // None of the first three contains a space.
    const id = `${keyId} ${plan} ${customer} ${audience}`;
    const current = this.#assertions.get(id);
    if (current === undefined) return this.#sign(id, customer, plan, keyId, audience);
    const { clock, ttlSeconds } = this.#options;
    const age = (clock.nowMs() - current.signedAtMs) / (1000 * ttlSeconds);
    if (age >= 0 && age < REFRESH_FROM) return current.jwt;
    const signing = this.#sign(id, customer, plan, keyId, audience);
    if (age < 0 || age >= LATEST_USE) return signing;
    // A failure is reported to the requests that wait for the new JWT.
    signing.catch(() => {});
    return current.jwt;
  }

  #sign(id: string, customer: string, plan: string, keyId: string, audience: string): Promise<string> {
    const inProgress = this.#signings.get(id);
    if (inProgress !== undefined) return inProgress;
    const { keys, issuer, ttlSeconds, clock } = this.#options;
    const signedAtMs = clock.nowMs();
    const issuedAt = Math.floor(signedAtMs / 1000);
    // No `nbf`: it would add nothing to `iat`, and would fail if the backend's clock is a second behind.
    const signing = new SignJWT({ plan, key_id: keyId })
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT', kid: keys.kid })
      .setIssuer(issuer)
      .setSubject(customer)
      .setAudience(audience)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + ttlSeconds)
      .sign(keys.privateKey)
      .then((jwt) => {
        this.#assertions.set(id, { jwt, signedAtMs });
        return jwt;
      })
      .finally(() => this.#signings.delete(id));
    this.#signings.set(id, signing);
    return signing;
  }
}
