import type { NotifySecretStore } from '../notify-secrets.ts';
import type { EmbeddedContext } from './database.ts';

export function embeddedNotifySecrets({ sql, run, clock }: EmbeddedContext): NotifySecretStore {
  return {
    rotate: (customer, secret, graceMs) =>
      run('rotate_notify_secret', () => {
        // Inserts nothing if there is no such customer.
        const row = sql.get<{ hadOne: number }>`
          INSERT INTO notify_secret (customer, secret) SELECT id, ${secret} FROM customer WHERE id = ${customer}
          ON CONFLICT DO UPDATE
            SET former = secret, former_until_ms = ${clock.nowMs() + graceMs}, secret = excluded.secret
          RETURNING former IS NOT NULL AS hadOne`;
        return row && row.hadOne === 1;
      }),

    inForce: (customer) =>
      run('read_notify_secret', () => {
        const rows = sql.all<{ secret: string }>`
          SELECT secret FROM notify_secret WHERE customer = ${customer}
          UNION ALL
          SELECT former FROM notify_secret WHERE customer = ${customer} AND former_until_ms > ${clock.nowMs()}`;
        return rows.map(({ secret }) => secret);
      }),
  };
}
