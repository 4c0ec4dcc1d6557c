/**
 * Loaded into the gateway and its workers by `node --import`. On SIGUSR2 it writes down what only the process itself
 * knows: the size of the heap once garbage is collected, and what keeps its event loop busy.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vitalsFileName } from './vitals-file.ts';

const { SOAK_VITALS_FOLDER: folder } = process.env;
if (folder === undefined) throw new Error('SOAK_VITALS_FOLDER is not set');

process.on('SIGUSR2', () => {
  globalThis.gc?.();
  const file = join(folder, vitalsFileName(process.pid));
  const handles = process.getActiveResourcesInfo().length;
  writeFileSync(`${file}.new`, JSON.stringify({ handles, heapBytes: process.memoryUsage().heapUsed }));
  renameSync(`${file}.new`, file);
});
