import type { Request } from 'express';
import type { FailedAttempts } from '../http/listener/failed-attempts.ts';
import type { Tracing } from '../observability/tracing/tracing.ts';
import type { Assertions } from '../upstream/identity/assertions.ts';
import type { ProxyTrust } from './client-address.ts';
import type { BrowserKeys, KeyHeaders } from './credentials.ts';
import type { GuardLimits } from './guard.ts';
import type { PublicRouteTable } from './routes.ts';

/**
 * Settings of the public listener that a config reload can change. A reload replaces the whole object and never
 * modifies it. Each request uses the settings that were current when it arrived.
 */
export interface PublicSettings extends ProxyTrust {
  /** Of the check listener. */
  readonly via?: 'check' | undefined;
  /** Returns whether the request is no entry among the failed requests. */
  readonly isUnlisted?: ((req: Pick<Request, 'originalUrl'>) => boolean) | undefined;
  readonly routes: PublicRouteTable;
  readonly guardLimits: GuardLimits;
  /** Time for a client to send a request's head and the buffered start of its body. */
  readonly requestTimeoutMs: number;
  /** Time in which a client must send at least one byte of a request body. */
  readonly bodyStallTimeoutMs: number;
  /** Maximum requests in progress at once. */
  readonly maxInFlight: number;
  readonly keyHeaders: KeyHeaders;
  readonly failedKeys: FailedAttempts;
  readonly browserKeys: BrowserKeys;
  /** Whether the backend gets the X-Tollgate-* headers with customer, plan and key id. */
  readonly identityHeaders: boolean;
  /** For problem documents; `{code}` is replaced by the problem's code. */
  readonly documentationUrl?: string | undefined;
  /** Undefined: the backend gets no signed assertion of the customer's identity. */
  readonly assertions?: Pick<Assertions, 'of'> | undefined;
  /** Undefined: no request is traced. */
  readonly tracing?: Pick<Tracing, 'sample'> | undefined;
}
