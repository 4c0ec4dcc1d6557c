/** The maintenance in SQLite: a table of one row. */
import { formatMaintenance, type MaintenanceStore, parseMaintenance } from '../maintenance.ts';
import type { EmbeddedContext } from './database.ts';

/** `changed` is called after each write. */
export function embeddedMaintenance({ sql, run }: EmbeddedContext, changed: () => void): MaintenanceStore {
  return {
    async read() {
      const row = await run('read_maintenance', () => sql.get<{ record: string }>`SELECT record FROM maintenance`);
      return row && parseMaintenance(row.record);
    },
    async write(maintenance) {
      const record = formatMaintenance(maintenance);
      await run(
        'write_maintenance',
        () => sql.run`INSERT OR REPLACE INTO maintenance (id, record) VALUES (1, ${record})`,
      );
      changed();
    },
  };
}
