import { isPossibleKey } from '../keys/api-key.ts';
import type { Problem } from '../problems/document.ts';
import { hasKeyInQuery } from './key-in-query.ts';

export type Credentials =
  | { readonly token: string }
  | { readonly reason: 'missing' | 'in_query' | 'malformed'; readonly problem: Problem };

/** Values for `WWW-Authenticate` (RFC 6750 §3): without credentials there is no error attribute (§3.1). */
export interface Challenges {
  readonly missing: string;
  readonly invalidRequest: string;
  readonly invalidToken: string;
}

export function createChallenges(realm: string): Challenges {
  const bearer = `Bearer realm="${realm}"`;
  return {
    missing: bearer,
    invalidRequest: `${bearer}, error="invalid_request"`,
    invalidToken: `${bearer}, error="invalid_token"`,
  };
}

function countAuthorizationFields(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 13 && name.toLowerCase() === 'authorization') count++;
  }
  return count;
}

/** Returns the refusal of an API key in the query. It does not repeat the key. */
function keyInQuery(challenges: Challenges): Problem {
  return {
    code: 'key_in_query',
    detail:
      'There is an API key in the query, where servers and proxies log it. Consider it exposed: rotate it in your dashboard, and send the new one as "Authorization: Bearer <API_KEY>".',
    headers: ['WWW-Authenticate', challenges.missing],
  };
}

/**
 * Returns the bearer token of a request, or the refusal (RFC 6750 §2.1, RFC 9110 §11.4). Counts Authorization headers
 * in `rawHeaders`, because Node.js uses the first of two, and the backend might use the second. Searches `query` for a
 * key only if there is no Authorization header.
 */
export function readCredentials(
  authorization: string | undefined,
  rawHeaders: readonly string[],
  query: string,
  challenges: Challenges,
): Credentials {
  const malformed = (detail: string): Credentials => ({
    reason: 'malformed',
    problem: { code: 'malformed_key', detail, headers: ['WWW-Authenticate', challenges.invalidRequest] },
  });
  const missing = (detail: string): Credentials => ({
    reason: 'missing',
    problem: { code: 'missing_key', detail, headers: ['WWW-Authenticate', challenges.missing] },
  });
  if (authorization === undefined) {
    if (hasKeyInQuery(query)) return { reason: 'in_query', problem: keyInQuery(challenges) };
    return missing('Send your API key as "Authorization: Bearer <API_KEY>".');
  }
  if (countAuthorizationFields(rawHeaders) > 1) return malformed('Send exactly one Authorization header.');
  const space = authorization.indexOf(' ');
  const scheme = space < 0 ? authorization : authorization.slice(0, space);
  if (scheme.toLowerCase() !== 'bearer') {
    return missing('The Authorization header must use the Bearer scheme: "Authorization: Bearer <API_KEY>".');
  }
  let start = scheme.length;
  while (authorization.charCodeAt(start) === 0x20) start++;
  const token = authorization.slice(start);
  if (!isPossibleKey(token)) {
    return malformed(
      'What follows "Bearer" is not an API key: send the key exactly as it was shown, and nothing else.',
    );
  }
  return { token };
}
