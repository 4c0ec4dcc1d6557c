/**
 * Checks the syntax of a request path on its raw bytes (RFC 3986 §3.3, §6.2.2). Bytes beyond ASCII are decoded, but
 * only to validate them.
 *
 * Each resource must have exactly one spelling. Otherwise gateway and backend could disagree about which resource a
 * path names. So everything that some server normalises is refused: dot segments, percent-encoded unreserved
 * characters, encoded separators, encoded controls, and bytes that are not UTF-8 once decoded.
 */
import { hexValue } from '../base/hex-digit.ts';

/** Why a path is refused. Completes the error message `The path …`. */
type PathFault =
  | 'has a character that is not allowed in a path'
  | 'has a percent sign without two hexadecimal digits'
  | 'percent-encodes a character that must be sent as it is'
  | 'percent-encodes a separator or a control character'
  | 'has percent-encoded bytes that are not UTF-8'
  | 'has a dot segment';

const UNRESERVED = 1;
const OTHER_PATH_CHARACTER = 2;

/** Classes of the characters that a path may contain unencoded: pchar (RFC 3986 §3.3) and the slash. */
const CLASSES = new Uint8Array(128);
for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~') {
  CLASSES[character.charCodeAt(0)] = UNRESERVED;
}
for (const character of "!$&'()*+,;=:@/") CLASSES[character.charCodeAt(0)] = OTHER_PATH_CHARACTER;

const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;
const PERCENT = 0x25;
/** Slash, backslash, percent sign and semicolon. */
const FORBIDDEN_WHEN_ENCODED: ReadonlySet<number> = new Set([0x2f, 0x5c, PERCENT, 0x3b]);

/** C1 control characters (ISO 6429), which are beyond ASCII (RFC 20). For decoded text. */
const C1_CONTROL = /[\u0080-\u009f]/;

/** Returns the fault of encoded bytes beyond ASCII. Decodes the path: several bytes can form one character. */
function findEncodedTextFault(path: string): PathFault | undefined {
  try {
    // Throws on overlong forms, surrogates and truncated sequences.
    const text = decodeURIComponent(path);
    return C1_CONTROL.test(text) ? 'percent-encodes a separator or a control character' : undefined;
  } catch {
    return 'has percent-encoded bytes that are not UTF-8';
  }
}

/** Returns the first fault found in `path`, which begins with a slash and has no query; undefined if it is valid. */
export function findPathFault(path: string): PathFault | undefined {
  if (path.includes('/.') && DOT_SEGMENT.test(path)) return 'has a dot segment';
  let hasHighBytes = false;
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i);
    if (code === PERCENT) {
      const high = hexValue(path.charCodeAt(i + 1));
      const low = hexValue(path.charCodeAt(i + 2));
      if (high < 0 || low < 0) return 'has a percent sign without two hexadecimal digits';
      const byte = high * 16 + low;
      if (byte >= 0x80) hasHighBytes = true;
      else if (CLASSES[byte] === UNRESERVED) return 'percent-encodes a character that must be sent as it is';
      else if (byte < 0x20 || byte === 0x7f || FORBIDDEN_WHEN_ENCODED.has(byte)) {
        return 'percent-encodes a separator or a control character';
      }
      i += 2;
    } else if (code >= 0x80 || CLASSES[code] === 0) {
      return 'has a character that is not allowed in a path';
    }
  }
  return hasHighBytes ? findEncodedTextFault(path) : undefined;
}
