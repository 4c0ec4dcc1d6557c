import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import type { Clock } from '../../base/clock.ts';
import { KeySetUnavailableError } from './remote-key-set.ts';

/** The subject and scopes of a JWT, or why it is not accepted. */
export type JwtVerdict =
  | {
      readonly outcome: 'valid';
      readonly subject: string;
      readonly scopes: ReadonlySet<string>;
      /** Wall time. */
      readonly expiresAtMs: number;
    }
  /** `reason` is for the log, `detail` for the response. */
  | { readonly outcome: 'invalid'; readonly reason: string; readonly detail: string }
  /** The issuer's keys are not available: the JWT may be valid or not. */
  | { readonly outcome: 'unverifiable' };

export interface JwtVerifier {
  verify(token: string): Promise<JwtVerdict>;
}

interface JwtVerifierOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Returns the key for a JWT. Rejects with jose's errors, or with KeySetUnavailableError. */
  readonly keyFor: JWTVerifyGetKey;
}

/** Asymmetric algorithms only (RFC 8725 §3.1): with HMAC, a published key could be used as the shared secret. */
const ALGORITHMS = 'EdDSA Ed25519 ES256 ES384 ES512 PS256 PS384 PS512 RS256 RS384 RS512'.split(' ');
/** Synchronized clocks can still differ by seconds. */
const CLOCK_TOLERANCE_SECONDS = 10;
/** A copied JWT is valid until it expires, so issuers that never let one expire must not be trusted with this. */
const MAX_LIFETIME_SECONDS = 86_400;
/** The types of access tokens (RFC 9068) and of those without a more specific type; not of logout or DPoP tokens. */
const TYPES: ReadonlySet<string> = new Set(['jwt', 'at+jwt']);
/** A subject is written to log lines and audit entries. */
const SUBJECT = /^\P{Cc}{1,256}$/u;

/** Checks claims only after the signature, so that details about them reach only clients of the issuer. */
export function createJwtVerifier({ issuer, audience, clock, keyFor }: JwtVerifierOptions): JwtVerifier {
  return {
    async verify(token) {
      try {
        const nowSeconds = clock.nowMs() / 1000;
        const { payload, protectedHeader } = await jwtVerify(token, keyFor, {
          algorithms: ALGORITHMS,
          issuer,
          audience,
          requiredClaims: ['exp', 'sub'],
          clockTolerance: CLOCK_TOLERANCE_SECONDS,
          currentDate: new Date(nowSeconds * 1000),
        });
        const { sub = '', exp = 0, iat = nowSeconds } = payload;
        const { typ = 'JWT' } = protectedHeader;
        // RFC 7515 §4.1.9: the type may have the prefix of a media type.
        if (!TYPES.has(typ.toLowerCase().replace(/^application\//, ''))) {
          return invalid('type', 'The type of the JWT ("typ") must be JWT or at+jwt, or not be given.');
        }
        if (iat > nowSeconds + CLOCK_TOLERANCE_SECONDS) return invalid('claim_iat', claimDetail('iat'));
        if (exp - iat > MAX_LIFETIME_SECONDS) {
          return invalid('lifetime', 'The JWT is valid for more than 24 hours. Have the issuer shorten that.');
        }
        if (typeof sub !== 'string' || !SUBJECT.test(sub)) return invalid('claim_sub', claimDetail('sub'));
        return { outcome: 'valid', subject: sub, scopes: scopesOf(payload), expiresAtMs: exp * 1000 };
      } catch (error) {
        return error instanceof KeySetUnavailableError ? { outcome: 'unverifiable' } : explain(error);
      }
    },
  };
}

function invalid(reason: string, detail: string): JwtVerdict {
  return { outcome: 'invalid', reason, detail };
}

function claimDetail(claim: string): string {
  return `The JWT's "${claim}" is missing or not accepted.`;
}

function explain(error: unknown): JwtVerdict {
  if (error instanceof errors.JWTExpired) return invalid('expired', 'The JWT has expired: get a new one.');
  if (error instanceof errors.JWTClaimValidationFailed)
    return invalid(`claim_${error.claim}`, claimDetail(error.claim));
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return invalid('signature', 'The signature of the JWT is wrong.');
  }
  if (error instanceof errors.JWKSNoMatchingKey) {
    return invalid('unknown_key', 'The JWT is signed by none of the keys that its issuer publishes.');
  }
  if (error instanceof errors.JWKSMultipleMatchingKeys) {
    return invalid('ambiguous_key', 'The issuer has several keys: the JWT must name the one that signed it, by "kid".');
  }
  if (error instanceof errors.JOSEAlgNotAllowed) {
    return invalid('algorithm', 'The JWT must be signed by an asymmetric algorithm.');
  }
  // Malformed tokens, and keys of the issuer that cannot be used, such as RSA keys of less than 2048 bits.
  return invalid('unusable', 'This is not a JWT that can be verified.');
}

/** `scope` is a space-separated list (RFC 8693 §4.2); some issuers name it `scp`, or put an array there. */
function scopesOf({ scope, scp }: JWTPayload): ReadonlySet<string> {
  const listed = [scope, scp].flat().filter((entry) => typeof entry === 'string');
  return new Set(listed.flatMap((entry) => entry.split(' ')));
}
