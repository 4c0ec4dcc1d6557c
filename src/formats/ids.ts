/** A customer's id: safe in header values, Redis key names and URLs. */
const CUSTOMER_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/;

export function isCustomerId(text: string): boolean {
  return CUSTOMER_ID.test(text);
}

/** The public id of an API key: safe in header values and log lines. */
const KEY_ID = /^[\x21-\x7e]{1,256}$/;

export function isKeyId(text: string): boolean {
  return KEY_ID.test(text);
}
