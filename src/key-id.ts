/** The public id of an API key: safe in header values and log lines. */
const KEY_ID = /^[\x21-\x7e]{1,256}$/;

export function isKeyId(text: string): boolean {
  return KEY_ID.test(text);
}
