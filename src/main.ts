#!/usr/bin/env node
import { receiveSignals } from './cli/process-signals.ts';

const args = process.argv.slice(2);
const stopping = args[0] === 'start' ? receiveSignals() : undefined;
const { runCommandLine } = await import('./cli/command-line.ts');
// Not `process.exitCode`: a last write to a standard output without a reader would keep the process alive forever.
process.exit(await runCommandLine(args, { stopping }));
