import { DEMO_CUSTOMERS, PORTAL_CUSTOMER } from './customers.ts';

interface Addresses {
  readonly public: string;
  readonly ops: string;
  readonly admin: string;
  /** A link of one demo customer, good once. */
  readonly portalLink: string;
  /** The header in which clients send a key. */
  readonly keyHeader: string;
}

/**
 * Returns the console's address and first commands to try, as lines that can be copied. `generatedToken`: the admin token
 * that was generated for this start; undefined if the user set one.
 */
export function banner(addresses: Addresses, generatedToken: string | undefined): string {
  const list = DEMO_CUSTOMERS.map((customer) => {
    const own = 'requests_per_hour' in customer ? ` (${customer.requests_per_hour} requests an hour of its own)` : '';
    return `    ${customer.key.padEnd(22)} ${customer.plan}${own}`;
  });
  const scheme = addresses.keyHeader.toLowerCase() === 'authorization' ? 'Bearer ' : '';
  const token =
    generatedToken === undefined
      ? 'the admin token (TOLLGATE_ADMIN_TOKEN)'
      : `this start's admin token: ${generatedToken}

  Command line and admin API, in another terminal:
    export TOLLGATE_ADMIN_TOKEN=${generatedToken}`;
  return `
  Tollgate is running, with a sample backend and one demo customer per plan:
${list.join('\n')}

  Console: ${addresses.admin}/console
    Log in with ${token}

  Portal, as ${PORTAL_CUSTOMER.name} sees it (the link works once, within five minutes):
    ${addresses.portalLink}

  Try:
    curl -i -H '${addresses.keyHeader}: ${scheme}${DEMO_CUSTOMERS[0].key}' '${addresses.public}/v1/conversations?limit=2'
    curl -i ${addresses.public}/v1/conversations
    curl -s ${addresses.ops}/readyz
    curl -s ${addresses.ops}/metrics | grep ^tollgate_

  Ctrl-C stops it. The log follows, with one line per request.

`;
}
