/**
 * Sends notices to webhooks. A customer chooses its URL, so it may try to reach hosts that only the gateway can reach
 * (server-side request forgery). Against that:
 *
 * - The addresses of a host name are checked after they are resolved, and the connection goes to a checked address:
 *   there is no second resolution that could return another one. Node.js's `blockList` option would not do: it is
 *   ignored for TLS connections.
 * - The host names of URLs without `allowPrivate` are resolved by DNS alone. getaddrinfo would occupy a thread of Node.js
 *   for as long as a hostile name server does not respond, and the connections to the store and the backend wait for the
 *   same few threads. It would also consult /etc/hosts.
 * - No redirect is followed, and no proxy of the environment is used.
 * - The response tells nothing but its status and Retry-After. Its body is discarded. All bytes that a receiver sends
 *   count towards one bound, and so do interim responses: an endless stream of either would occupy the event loop.
 * - Each delivery has its own connection and TLS session, so that nothing is shared between customers.
 */
import type { LookupAddress } from 'node:dns';
import dns from 'node:dns/promises';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { finished } from 'node:stream/promises';
import { boundResponse, responseTo } from '../../base/bounded-response.ts';
import type { Clock } from '../../base/clock.ts';
import { isPublicAddress } from '../../formats/public-address.ts';
import { signatureHeaders } from '../../formats/webhook-signature.ts';
import { isWebhookUrl } from '../../formats/webhook-url.ts';

/** Where a notice is sent. */
export interface WebhookEndpoint {
  readonly url: string;
  /** Keys of the signatures: two while a secret is rotated, so that the receiver can verify with either. */
  readonly secrets: readonly Uint8Array[];
  /** Whether addresses of private networks and plain HTTP are allowed: the operator's own endpoints only. */
  readonly allowPrivate: boolean;
}

export type DeliveryOutcome =
  /** The response was 2xx. */
  | { readonly kind: 'delivered' }
  /** The response was 410: the receiver wants no more notices. */
  | { readonly kind: 'gone' }
  /** `retryAfterMs`: what the receiver asked for, if it did. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMs: number | null };

/** Sends a notice once. Never rejects: every failure is an outcome. `id` stays the same in all attempts. */
export type Deliver = (endpoint: WebhookEndpoint, message: Message) => Promise<DeliveryOutcome>;

interface Message {
  readonly id: string;
  readonly body: string;
}

type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

interface DeliverOptions {
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Aborts deliveries when the gateway stops. */
  readonly closing: AbortSignal;
  /** Resolves a host name to its addresses. For tests. */
  readonly resolve?: Resolve;
  /** From the resolution of the name to the end of the response. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 15_000;
const MAX_HEADER_BYTES = 16_384;
/** Of all that a receiver sends, interim responses and empty lines included. */
const MAX_RECEIVED_BYTES = 65_536;

export function createDeliver(options: DeliverOptions): Deliver {
  const { clock, closing, resolve, timeoutMs = TIMEOUT_MS } = options;

  /** Resolves to the response when its end, or as much of it as is allowed, is read. */
  async function post({ url: text, secrets, allowPrivate }: WebhookEndpoint, message: Message, signal: AbortSignal) {
    if (!isWebhookUrl(text, { allowPrivate })) throw new Error('the URL of the endpoint is not allowed');
    if (secrets.length === 0) throw new Error('the endpoint has no secret');
    const url = new URL(text);
    const body = Buffer.from(message.body);
    const request = (url.protocol === 'https:' ? https : http).request(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-length': body.length,
        'user-agent': 'tollgate',
        ...signatureHeaders(message, secrets, clock.nowMs()),
      },
      // An agent of its own for this request: no connection is kept, and no proxy is read from the environment.
      agent: false,
      lookup: allowPrivate
        ? lookupBy(resolve ?? resolveBySystem, () => true)
        : lookupBy(resolve ?? resolveByDns, isPublicAddress),
      maxHeaderSize: MAX_HEADER_BYTES,
      signal,
    });
    boundResponse(request, MAX_RECEIVED_BYTES);
    request.end(body);
    try {
      const response = await responseTo(request);
      // Once the status has arrived, failures to read the rest do not matter.
      await finished(response.resume()).catch(() => undefined);
      return response;
    } finally {
      request.destroy();
    }
  }

  return async (endpoint, message) => {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      return outcomeOf(await post(endpoint, message, AbortSignal.any([timeout, closing])), clock.nowMs());
    } catch (error) {
      return failed(timeout.aborted ? `no response within ${timeoutMs / 1000} seconds` : reasonOf(error));
    }
  };
}

const resolveBySystem: Resolve = (host) => dns.lookup(host, { all: true });

const resolveByDns: Resolve = async (host) => {
  const [v4, v6] = await Promise.allSettled([dns.resolve4(host), dns.resolve6(host)]);
  if (v4.status === 'rejected' && v6.status === 'rejected') {
    throw new Error(`the host name cannot be resolved: ${v4.reason.code}`);
  }
  const ofFamily = (found: typeof v4, family: number) =>
    found.status === 'fulfilled' ? found.value.map((address) => ({ address, family })) : [];
  return [...ofFamily(v4, 4), ...ofFamily(v6, 6)];
};

/** Adapts `resolve` to what `net.connect` calls for host names, which connects to the returned addresses. */
function lookupBy(resolve: Resolve, isAllowed: (address: string) => boolean): LookupFunction {
  return (host, { all }, callback) => {
    resolve(host).then(
      (addresses) => {
        const allowed = addresses.filter(({ address }) => isAllowed(address));
        const [first] = allowed;
        if (first === undefined) callback(new Error('the host of the endpoint has no public address'), []);
        else if (all) callback(null, allowed);
        else callback(null, first.address, first.family);
      },
      (error) => callback(error, []),
    );
  };
}

function outcomeOf({ statusCode = 0, headers }: IncomingMessage, nowMs: number): DeliveryOutcome {
  if (statusCode >= 200 && statusCode < 300) return { kind: 'delivered' };
  if (statusCode === 410) return { kind: 'gone' };
  return failed(`the response had status ${statusCode}`, parseRetryAfter(headers['retry-after'], nowMs));
}

/**
 * Parses Retry-After, as seconds or as an HTTP date (RFC 9110 §10.2.3), to a wait in ms. Returns null if there is none,
 * or it is invalid or in the past.
 */
function parseRetryAfter(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  if (/^\d{1,10}$/.test(value)) return Number(value) * 1000;
  // A date without a time zone, or a number with a sign, is not an HTTP date.
  const waitMs = / GMT$/.test(value) ? Date.parse(value) - nowMs : Number.NaN;
  return waitMs > 0 ? waitMs : null;
}

function failed(reason: string, retryAfterMs: number | null = null): DeliveryOutcome {
  return { kind: 'failed', reason, retryAfterMs };
}

/** Error codes are short and safe to show; messages of the TLS layer may be long. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'the request failed';
  return 'code' in error && typeof error.code === 'string' ? `the request failed: ${error.code}` : error.message;
}
