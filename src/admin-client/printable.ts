/** Controls (escape sequences among them), line separators, and what turns the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu;
/** Those of them that JSON.stringify leaves as they are; its own line breaks stay. */
const UNPRINTABLE_IN_JSON = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/**
 * Text from elsewhere as it may be shown on a terminal, in one line: what would move the cursor, colour or hide
 * something is shown as `\u{…}` instead.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${codeOf(character)}}`);
}

/** The same for a JSON document, which means what it meant before. Without `indent` it is one line. */
export function printableJson(value: unknown, indent = 2): string {
  const text = JSON.stringify(value, undefined, indent);
  return text.replace(UNPRINTABLE_IN_JSON, (character) => `\\u${codeOf(character).padStart(4, '0')}`);
}

function codeOf(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16);
}
