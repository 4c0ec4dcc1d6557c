import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import type { Clock } from '../clock.ts';
import { KeySetUnavailableError } from './remote-key-set.ts';

/** What a JWT says of who presents it, or why it says nothing. */
export type JwtVerdict =
  | { readonly outcome: 'valid'; readonly subject: string; readonly scopes: ReadonlySet<string> }
  /** `reason` is for the log, `detail` for whoever presented it. */
  | { readonly outcome: 'invalid'; readonly reason: string; readonly detail: string }
  /** The issuer's keys are not known, so it can be neither. */
  | { readonly outcome: 'unverifiable' };

export interface JwtVerifier {
  verify(token: string): Promise<JwtVerdict>;
}

export interface JwtVerifierOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Rejects with jose's errors, or with KeySetUnavailableError. */
  readonly keyFor: JWTVerifyGetKey;
}

/** Public keys only (RFC 8725 §3.1): with HMAC among them a published key could be taken for a shared secret. */
const ALGORITHMS = [
  'EdDSA',
  'Ed25519',
  'ES256',
  'ES384',
  'ES512',
  'PS256',
  'PS384',
  'PS512',
  'RS256',
  'RS384',
  'RS512',
];
/** For clocks that are kept, but not to the same second. */
const CLOCK_TOLERANCE_SECONDS = 10;
/** It becomes part of log lines and audit entries. */
const SUBJECT = /^\P{Cc}{1,256}$/u;

/** Claims are looked at after the signature only, so that what is said of them is said to the issuer's own clients. */
export function createJwtVerifier({ issuer, audience, clock, keyFor }: JwtVerifierOptions): JwtVerifier {
  return {
    async verify(token) {
      try {
        const { payload } = await jwtVerify(token, keyFor, {
          algorithms: ALGORITHMS,
          issuer,
          audience,
          requiredClaims: ['exp', 'sub'],
          clockTolerance: CLOCK_TOLERANCE_SECONDS,
          currentDate: new Date(clock.nowMs()),
        });
        const { sub = '' } = payload;
        if (typeof sub !== 'string' || !SUBJECT.test(sub)) return invalid('claim_sub', claimDetail('sub'));
        return { outcome: 'valid', subject: sub, scopes: scopesOf(payload) };
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
  return `The JWT's "${claim}" is missing, or not what is wanted.`;
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
  // Besides malformed tokens: keys of the issuer that cannot be used, such as RSA of less than 2048 bits.
  return invalid('unusable', 'This is not a JWT that can be verified.');
}

/** `scope` is a list with spaces (RFC 8693 §4.2); others call it `scp`, or have an array in it. */
function scopesOf({ scope, scp }: JWTPayload): ReadonlySet<string> {
  const listed = [scope, scp].flat().filter((entry) => typeof entry === 'string');
  return new Set(listed.flatMap((entry) => entry.split(' ')));
}
