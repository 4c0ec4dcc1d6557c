/** Control characters (ESC included), lone surrogates, line separators and bidirectional controls. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu;
/** Those characters that JSON.stringify does not escape. Excludes the line breaks that it writes itself. */
const UNPRINTABLE_IN_JSON = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/**
 * Makes untrusted text safe to show on a terminal, on one line. Characters that could move the cursor, change colours
 * or hide text become `\u{…}`.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${codeOf(character)}}`);
}

/** Returns JSON that is safe to show on a terminal and still parses to the same value. `indent` 0: one line. */
export function printableJson(value: unknown, indent = 2): string {
  const text = JSON.stringify(value, undefined, indent);
  return text.replace(UNPRINTABLE_IN_JSON, (character) => `\\u${codeOf(character).padStart(4, '0')}`);
}

function codeOf(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16);
}
