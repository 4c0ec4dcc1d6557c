/**
 * Sessions of the portal. Each is found by the SHA-256 of a secret: of the code in a link, which opens it once; of its
 * cookie; or of a token. The store has no secret itself, and ends sessions by its own clock. All of a customer's sessions
 * end together, in every gateway at once, because each request looks its session up.
 */
import { hash } from 'node:crypto';
import { parseJsonObject } from './json-object.ts';
import { isTimeMs } from './usage-history.ts';

export interface PortalSession {
  readonly id: string;
  readonly customer: string;
  /** Tells the customer from a later one with the same id; empty if its record has no creation time. */
  readonly customerCreatedAt?: string | undefined;
  readonly scopes: readonly string[];
  /** Who uses it: a label of the operator. */
  readonly user?: string | undefined;
  readonly returnUrl?: string | undefined;
  /** Wall time of the gateway that made it, for people. The store ends it by its own clock. */
  readonly expiresAtMs: number;
}

/** Of a customer. A further one ends the one that would end first. */
export const MAX_PORTAL_SESSIONS = 200;
/** How long the code of a link is good. */
export const PORTAL_CODE_MS = 5 * 60_000;
/** What the number of writes is limited for. */
export const PORTAL_WRITES_MS = 3_600_000;

export interface PortalSessionStore {
  /** Adds a session that ends after `ttlMs`, under a secret. Resolves to whether there is such a customer. */
  add(kind: 'code' | 'token', sha256: string, session: PortalSession, ttlMs: number): Promise<boolean>;
  /**
   * Takes a code away, and puts the session under a cookie. Resolves to undefined if the code is unknown, expired or was
   * taken before: of calls at the same time, one gets the session.
   */
  open(codeSha256: string, cookieSha256: string): Promise<PortalSession | undefined>;
  find(kind: 'cookie' | 'token', sha256: string): Promise<PortalSession | undefined>;
  end(sha256: string): Promise<void>;
  /** Ends all sessions, links and tokens of a customer. */
  endAll(customer: string): Promise<void>;
  /**
   * Counts a write of a customer unless it has made `limit` writes within {@link PORTAL_WRITES_MS}. Resolves to how long,
   * in ms, it must wait; 0 if the write was counted. `id`: unique to the write.
   */
  countWrite(customer: string, id: string, limit: number): Promise<number>;
}

export function portalSecretHash(secret: string): string {
  return hash('sha256', secret);
}

/** Returns a session as text for a store. */
export function formatPortalSession({ customer: _, ...session }: PortalSession): string {
  return JSON.stringify(session);
}

/** Returns the session in a store's text; undefined if it has another form. */
export function parsePortalSession(customer: string, text: string): PortalSession | undefined {
  const { id, customerCreatedAt, scopes, user, returnUrl, expiresAtMs } = parseJsonObject(text) ?? {};
  const isText = (value: unknown) => value === undefined || typeof value === 'string';
  const isValid =
    typeof id === 'string' &&
    Array.isArray(scopes) &&
    scopes.every((scope) => typeof scope === 'string') &&
    isText(customerCreatedAt) &&
    isText(user) &&
    isText(returnUrl) &&
    isTimeMs(expiresAtMs);
  return isValid
    ? ({ id, customer, customerCreatedAt, scopes, user, returnUrl, expiresAtMs } as PortalSession)
    : undefined;
}
