import { runWorker } from './worker.ts';

process.exit(await runWorker());
