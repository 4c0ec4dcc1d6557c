/** Entry point of the thread that files.ts starts: builds the files and posts them. */
import { parentPort } from 'node:worker_threads';
import { buildConsoleFiles } from './build-files.ts';

parentPort?.postMessage(buildConsoleFiles());
