/** Where notices are sent: to the operator's endpoints, and to a customer's own. */
import { parseWebhookSecret } from '../../formats/webhook-signature.ts';
import { isWebhookUrl } from '../../formats/webhook-url.ts';
import type { NotifySecretStore } from '../../store/notify-secrets.ts';
import type { CustomerRecord } from '../../store/record-fields.ts';
import type { DeliveryOutcome, WebhookEndpoint } from './delivery.ts';

interface ConfiguredEndpoint {
  readonly url: string;
  /** `whsec_…` */
  readonly secrets: readonly string[];
  readonly allowPrivate: boolean;
}

/** What became of a test notice. `endpoint`: its URL, or `notify_url`. */
export interface TestedEndpoint {
  readonly endpoint: string;
  readonly result: DeliveryOutcome['kind'];
  readonly reason: string | null;
}

/** Returns an endpoint of the configuration. */
export function operatorEndpoint({ secrets, ...endpoint }: ConfiguredEndpoint): WebhookEndpoint {
  return { ...endpoint, secrets: keysOf(secrets) };
}

/**
 * Resolves to a customer's own endpoint; undefined if it lacks a secret or a URL, or another program wrote one that is
 * not allowed. Rejects with StoreUnavailableError.
 */
export async function customerEndpoint(
  { id, notifyUrl: url }: CustomerRecord,
  notifySecrets: Pick<NotifySecretStore, 'inForce'>,
): Promise<WebhookEndpoint | undefined> {
  if (url === undefined || !isWebhookUrl(url)) return undefined;
  const secrets = keysOf(await notifySecrets.inForce(id));
  return secrets.length > 0 ? { url, secrets, allowPrivate: false } : undefined;
}

function keysOf(secrets: readonly string[]): Uint8Array[] {
  return secrets.flatMap((secret) => parseWebhookSecret(secret) ?? []);
}
