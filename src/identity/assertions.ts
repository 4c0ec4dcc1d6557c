/**
 * Signed statements of who calls, for the backend: JWTs that it can verify without trusting the network between.
 *
 * A signature costs about as much as all the rest of a request, so one is made per customer, plan and key, and serves
 * until half of its time is over. The request that comes then is still served with it, and has the next one made; from
 * three quarters on requests wait for it, so that the backend always has a quarter left.
 *
 * Ages are of wall time, as the claims are: if the clock is set, what was signed by the old time is not used any more.
 */
import { SignJWT } from 'jose';
import type { Clock } from '../clock.ts';
import { LruMap } from '../lru-map.ts';
import { ALGORITHM, type SigningKeys } from './signing-keys.ts';

const REFRESH_FROM = 1 / 2;
const LATEST_USE = 3 / 4;

export interface AssertionsOptions {
  readonly keys: Pick<SigningKeys, 'privateKey' | 'kid'>;
  readonly issuer: string;
  readonly audience: string;
  readonly ttlSeconds: number;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Most that are kept; the least recently used makes room. */
  readonly entries: number;
}

interface Assertion {
  readonly jwt: string;
  readonly signedAtMs: number;
}

export class Assertions {
  readonly #options: AssertionsOptions;
  readonly #refreshMs: number;
  readonly #latestMs: number;
  readonly #held: LruMap<string, Assertion>;
  readonly #underWay = new Map<string, Promise<string>>();

  constructor(options: AssertionsOptions) {
    this.#options = options;
    this.#refreshMs = options.ttlSeconds * 1000 * REFRESH_FROM;
    this.#latestMs = options.ttlSeconds * 1000 * LATEST_USE;
    this.#held = new LruMap(options.entries);
  }

  /** A JWT in compact form. A promise only where it has to be made. */
  of(customer: string, plan: string, keyId: string): string | Promise<string> {
    // None of the three has a space in it.
    const id = `${keyId} ${plan} ${customer}`;
    const held = this.#held.get(id);
    if (held === undefined) return this.#sign(id, customer, plan, keyId);
    const ageMs = this.#options.clock.nowMs() - held.signedAtMs;
    if (ageMs >= 0 && ageMs < this.#refreshMs) return held.jwt;
    const signing = this.#sign(id, customer, plan, keyId);
    if (ageMs < 0 || ageMs >= this.#latestMs) return signing;
    // Whoever has to wait for one hears of the failure.
    signing.catch(() => {});
    return held.jwt;
  }

  #sign(id: string, customer: string, plan: string, keyId: string): Promise<string> {
    const joined = this.#underWay.get(id);
    if (joined !== undefined) return joined;
    const { keys, issuer, audience, ttlSeconds, clock } = this.#options;
    const signedAtMs = clock.nowMs();
    const issuedAt = Math.floor(signedAtMs / 1000);
    // No `nbf`: it would say no more than `iat`, and fail where the backend's clock is a second behind.
    const signing = new SignJWT({ plan, key_id: keyId })
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT', kid: keys.kid })
      .setIssuer(issuer)
      .setSubject(customer)
      .setAudience(audience)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + ttlSeconds)
      .sign(keys.privateKey)
      .then((jwt) => {
        this.#held.set(id, { jwt, signedAtMs });
        return jwt;
      })
      .finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, signing);
    return signing;
  }
}
