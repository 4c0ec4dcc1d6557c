/** Entry point of the thread that files.ts starts: builds the files and posts them. */
import { parentPort, workerData } from 'node:worker_threads';
import { buildPageFiles } from './build-files.ts';

parentPort?.postMessage(buildPageFiles(workerData));
