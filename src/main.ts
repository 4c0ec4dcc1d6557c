#!/usr/bin/env node
import { runCommandLine } from './cli/command-line.ts';

// Not `process.exitCode`: a last write to a standard output without a reader would keep the process alive forever.
process.exit(await runCommandLine(process.argv.slice(2)));
