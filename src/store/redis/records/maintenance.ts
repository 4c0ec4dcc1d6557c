/** The maintenance in Redis: a string, whose changes are pushed to all instances. */
import { formatMaintenance, type MaintenanceStore, parseMaintenance } from '../../maintenance.ts';
import type { RedisChannel } from '../connection/channel.ts';
import { textFrom } from '../connection/client.ts';
import type { DataLossDetection } from '../installation/data-loss-detection.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';

interface RedisMaintenanceOptions {
  /** On which records are read: it fails soon if Redis is silent. */
  readonly connection: RedisChannel;
  readonly background: RedisChannel;
  readonly dataLoss: Pick<DataLossDetection, 'markNear' | 'see' | 'requireCertainty'>;
  readonly names: RedisKeyNames;
}

export function redisMaintenance({ connection, background, dataLoss, names }: RedisMaintenanceOptions) {
  const name = names.maintenance;
  return {
    async read() {
      const markName = dataLoss.markNear(name);
      // The mark is read after the record, as for keys: a record that was lost before never counts as one that never existed.
      const [text, id] = await connection.run('read_maintenance', async (redis) => {
        const replies = await redis.batch([
          ['get', name],
          ['get', markName],
        ]);
        return replies.map(([error, reply]) => {
          if (error) throw error;
          return textFrom(reply);
        });
      });
      dataLoss.see({ name: markName, id: id ?? null });
      if (text != null) return parseMaintenance(text);
      await dataLoss.requireCertainty('other');
      return undefined;
    },
    async write(maintenance) {
      await background.run('write_maintenance', (redis) => redis.set(name, formatMaintenance(maintenance)));
    },
  } satisfies MaintenanceStore;
}
