/**
 * Preloaded into gateways (`--import`) whose store has a clock that the test sets: the one line in which all scripts read it
 * adds the seconds in the key {@link STORE_CLOCK_SET_BY}.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { STORE_CLOCK_SET_BY } from './store-clock-key.ts';

const LINE = "local time = call('TIME')\n";

const { readFileSync } = fs;
const readPatched = (...args: Parameters<typeof readFileSync>) => {
  const content = readFileSync(...args);
  if (!String(args[0]).endsWith('/store/redis/connection/prelude.lua')) return content;
  if (String(content).split(LINE).length !== 2) throw new Error('scripts must read the clock in exactly one line');
  return String(content).replace(LINE, `${LINE}time[1] = time[1] + (call('GET', '${STORE_CLOCK_SET_BY}') or 0)\n`);
};
fs.readFileSync = readPatched as typeof readFileSync;
syncBuiltinESMExports();
