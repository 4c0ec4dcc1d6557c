/** What the refusals of a customer's requests mean, and what an operator can do. See docs/operations.md#error-codes. */

import { entryOf } from './entry-of.ts';

export interface RefusalReason {
  readonly means: string;
  readonly advice: string;
}

const REASONS: Readonly<Record<string, RefusalReason>> = {
  quota_exceeded: { means: 'Hourly quota used up', advice: 'Wait, raise the limit, or reset the usage.' },
  burst_exceeded: {
    means: 'Too many requests in one second',
    advice: 'The client should spread its requests and obey Retry-After. Or raise burst_per_second of the plan.',
  },
  too_many_concurrent: {
    means: 'Too many requests in progress',
    advice: 'The client should send fewer requests at the same time. Or raise max_concurrent of the plan.',
  },
  customer_suspended: {
    means: 'Customer suspended',
    advice: 'Reactivate the customer. The audit shows who suspended it.',
  },
  quota_not_configured: {
    means: 'No limit found',
    advice: 'Give the customer a configured plan, or a limit of its own.',
  },
  invalid_key: { means: 'Key revoked or expired', advice: 'Create a new key, and replace the old one in the client.' },
  browser_use: { means: 'Key used in a browser', advice: 'Rotate the key: users of the page can read it.' },
  key_in_query: { means: 'Key sent in the query', advice: 'Rotate the key: servers and proxies log queries.' },
  too_many_failures: {
    means: 'Too many invalid keys',
    advice: 'Find the client that sends them; see its address in the log.',
  },
  store_unavailable: { means: 'Store unavailable', advice: 'Restore the store: see the overview.' },
  overloaded: { means: 'Gateway overloaded', advice: 'Check the response times of the backend, or add instances.' },
  bad_gateway: {
    means: 'Backend failed',
    advice: 'Check the backend: it closed the connection or sent no valid HTTP.',
  },
  gateway_timeout: { means: 'Backend timed out', advice: 'Check the backend, or raise upstream.response_timeout_ms.' },
  upstream_unavailable: { means: 'Backend unavailable', advice: 'Check the backend: see the overview.' },
};

export function refusalReason(code: string): RefusalReason {
  return (
    entryOf(REASONS, code) ?? {
      means: 'Request not acceptable',
      advice: 'The response to the client names the fault in its detail.',
    }
  );
}
