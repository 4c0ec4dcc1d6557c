import { unescape as decodePercent } from 'node:querystring';
import { containsGeneratedKey } from '../keys/api-key.ts';

/**
 * Whether a key of our own making stands anywhere in a query, as it is or percent-encoded, whatever the parameter's
 * name. A key has no character that decoding changes, so the decoded text has the plain ones too. `query`: as sent; bad
 * percent signs are left as they are.
 */
export function hasKeyInQuery(query: string): boolean {
  return containsGeneratedKey(decodePercent(query));
}
