import type { FailedAttempts } from '../failed-attempts.ts';
import type { CredentialsPolicy } from '../upstream/request-headers.ts';
import type { BrowserKeys } from './browser-use.ts';
import type { TrustedProxies } from './client-address.ts';
import type { Challenges } from './credentials.ts';
import type { GuardLimits } from './guard.ts';
import type { RouteTable } from './routes.ts';

/**
 * What a reload of the configuration changes of the public listener: replaced as a whole, never changed. Each request
 * goes by those that held when it came.
 */
export interface PublicSettings {
  readonly routes: RouteTable;
  readonly guardLimits: GuardLimits;
  /** Requests under way at once, at most. */
  readonly mostInFlight: number;
  readonly challenges: Challenges;
  readonly trustedProxies: TrustedProxies;
  /** Whether X-Forwarded-Host from trusted proxies is used; otherwise the request's own Host is. */
  readonly trustForwardedHost: boolean;
  readonly failedKeys: FailedAttempts;
  readonly browserKeys: BrowserKeys;
  readonly upstreamHeaders: CredentialsPolicy;
  /** Whether the backend is told who calls, by X-Tollgate-* headers. */
  readonly identityHeaders: boolean;
  /** For problem documents; `{code}` stands for their code. */
  readonly documentationUrl?: string | undefined;
  /** Left out: the backend gets no assertion of who calls. */
  readonly assertions?: Assertions | undefined;
}

export interface Assertions {
  /**
   * A signed statement of who calls, for one header field. A promise only where it has to be made. What it throws or
   * rejects with is taken for a bug: the request is not sent, and not counted.
   */
  of(customer: string, plan: string, keyId: string): string | Promise<string>;
}
