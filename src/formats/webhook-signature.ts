/** Signatures and secrets of Standard Webhooks 1.0 (symmetric): https://github.com/standard-webhooks/standard-webhooks */
import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
/** The specification demands 24 to 64 bytes. */
const [MIN_BYTES, MAX_BYTES, NEW_BYTES] = [24, 64, 32];

/** The rule of {@link parseWebhookSecret}, in words. */
export const WEBHOOK_SECRET_RULE = `must be "${PREFIX}" followed by ${MIN_BYTES} to ${MAX_BYTES} random bytes in base64`;

/** `random`: must be cryptographically secure. */
export function newWebhookSecret(random: (size: number) => Buffer = randomBytes): string {
  return PREFIX + random(NEW_BYTES).toString('base64');
}

/** Parses `whsec_…` to the key of the signature; undefined if it is not a secret of that form. */
export function parseWebhookSecret(text: string): Uint8Array | undefined {
  const encoded = text.slice(PREFIX.length);
  if (!text.startsWith(PREFIX) || !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return undefined;
  const key = Buffer.from(encoded, 'base64');
  const isCanonical = key.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '');
  return isCanonical && key.length >= MIN_BYTES && key.length <= MAX_BYTES ? key : undefined;
}

/** Returns the headers that identify and sign a message: one signature for each secret, so that a receiver needs one. */
export function signatureHeaders(
  { id, body }: { readonly id: string; readonly body: string },
  secrets: readonly Uint8Array[],
  nowMs: number,
): Readonly<Record<`webhook-${'id' | 'timestamp' | 'signature'}`, string>> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signed = `${id}.${timestamp}.${body}`;
  const signatures = secrets.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
