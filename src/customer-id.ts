/** A customer's id: safe in header values, Redis key names and URLs. */
const CUSTOMER_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/;

export function isCustomerId(text: string): boolean {
  return CUSTOMER_ID.test(text);
}
