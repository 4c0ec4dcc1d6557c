import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../base/clock.ts';
import type { NotifySecretStore } from '../notify-secrets.ts';
import type { RunOperation } from './database.ts';

export function embeddedNotifySecrets(database: DatabaseSync, run: RunOperation, clock: Clock): NotifySecretStore {
  const selectCustomer = database.prepare('SELECT 1 FROM customer WHERE id = ?');
  const select = database.prepare('SELECT secret, former, former_until_ms FROM notify_secret WHERE customer = ?');
  const upsert = database.prepare(
    `INSERT INTO notify_secret (customer, secret) VALUES (:customer, :secret)
     ON CONFLICT DO UPDATE SET former = secret, former_until_ms = :untilMs, secret = :secret`,
  );
  return {
    rotate: (customer, secret, graceMs) =>
      run('rotate_notify_secret', () => {
        if (selectCustomer.get(customer) === undefined) return undefined;
        const hadOne = select.get(customer) !== undefined;
        upsert.run({ customer, secret, untilMs: clock.nowMs() + graceMs });
        return hadOne;
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
