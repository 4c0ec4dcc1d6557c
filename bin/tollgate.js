#!/usr/bin/env node
/** The start file of the command line. */
import './prepare-node.js';
import { existsSync } from 'node:fs';

// A checkout has the sources, the tarball of npm pack the compiled files: Node.js strips no types in node_modules.
const isCheckout = existsSync(new URL('../src/main.ts', import.meta.url));
await import(isCheckout ? '../src/main.ts' : '../dist/main.js');
