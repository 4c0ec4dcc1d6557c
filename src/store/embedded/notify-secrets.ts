import type { NotifySecretStore } from '../notify-secrets.ts';
import type { EmbeddedContext } from './database.ts';

export function embeddedNotifySecrets({ database, run, clock }: EmbeddedContext): NotifySecretStore {
  const select = database.prepare('SELECT secret, former, former_until_ms FROM notify_secret WHERE customer = ?');
  // Inserts nothing if there is no such customer.
  const upsert = database.prepare(
    `INSERT INTO notify_secret (customer, secret) SELECT id, :secret FROM customer WHERE id = :customer
     ON CONFLICT DO UPDATE SET former = secret, former_until_ms = :untilMs, secret = :secret
     RETURNING former IS NOT NULL AS hadOne`,
  );
  return {
    rotate: (customer, secret, graceMs) =>
      run('rotate_notify_secret', () => {
        const row = upsert.get({ customer, secret, untilMs: clock.nowMs() + graceMs });
        return row && row.hadOne === 1;
      }),

    inForce: (customer) =>
      run('read_notify_secret', () => {
        const row = select.get(customer);
        if (row === undefined) return [];
        const secrets = [row.secret, Number(row.former_until_ms) > clock.nowMs() ? row.former : null];
        return secrets.filter((secret) => typeof secret === 'string');
      }),
  };
}
