#!/usr/bin/env node
import { runCommandLine } from './cli/command-line.ts';

// Not by exitCode: a standard output that nobody reads keeps its last write, and with it the process, for ever.
process.exit(await runCommandLine(process.argv.slice(2)));
