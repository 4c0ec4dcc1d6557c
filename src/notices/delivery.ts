/** Where a notice is sent. */
export interface Endpoint {
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
export type Deliver = (
  endpoint: Endpoint,
  message: { readonly id: string; readonly body: string },
) => Promise<DeliveryOutcome>;
