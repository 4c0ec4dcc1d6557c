/** Two strings for each customer, of which the former secret expires by itself. */
import type { NotifySecretStore } from '../../notify-secrets.ts';
import { type RedisChannel, sendEach } from '../connection/channel.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';

/** Must be called before the first command is sent on the connection, because it defines a command. */
export function redisNotifySecrets(connection: RedisChannel, names: RedisKeyNames): NotifySecretStore {
  const rotateSecret = connection.client.defineScript(new URL('./rotate-notify-secret.lua', import.meta.url), 3);
  const namesOf = (customer: string) => [names.notifySecret(customer), names.formerNotifySecret(customer)];
  return {
    async rotate(customer, secret, graceMs) {
      const [record, ...secrets] = [names.customerRecord(customer), ...namesOf(customer)];
      const reply = await connection.run('rotate_notify_secret', () =>
        rotateSecret(record, ...secrets, secret, graceMs),
      );
      return reply === -1 ? undefined : reply === 1;
    },

    async inForce(customer) {
      const secrets = await sendEach(connection, 'read_notify_secret', namesOf(customer), (name) => ['get', name]);
      return secrets.filter((secret) => typeof secret === 'string');
    },
  };
}
