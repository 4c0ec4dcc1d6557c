import type { SeedCustomer } from '../config/config.ts';
import type { GatewayAddresses } from '../process/lifecycle.ts';

/** Returns a banner with first commands to try, as lines that can be copied. */
export function quickStartBanner(customers: readonly SeedCustomer[], addresses: GatewayAddresses): string {
  const [first] = customers;
  const list = customers.map(({ key, plan, requestsPerHour }) => {
    const own = requestsPerHour === undefined ? '' : ` (${requestsPerHour} requests an hour of its own)`;
    return `    ${key.padEnd(22)} ${plan}${own}`;
  });
  return `
  Tollgate is running, with a sample backend and one demo customer per plan:
${list.join('\n')}

  Try:
    curl -i -H 'Authorization: Bearer ${first?.key ?? ''}' '${addresses.public}/v1/conversations?limit=2'
    curl -i ${addresses.public}/v1/conversations
    curl -s ${addresses.ops}/readyz
    curl -s ${addresses.ops}/metrics | grep ^tollgate_

  Ctrl-C stops it. The log follows, one line a request.

`;
}
