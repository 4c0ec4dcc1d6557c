import { printable } from '../api/client/printable.ts';
import { inNumber } from '../base/in-number.ts';
import type { Config } from '../config/config.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { EXIT } from './exit-status.ts';
import { print, remark } from './output.ts';

export interface CheckOptions {
  /** Treats warnings as errors. */
  readonly strict?: boolean;
  /** Also connects to the store and the upstreams. */
  readonly connect?: boolean;
}

/**
 * Prints one line for a valid file, its warnings, and the result of each connection. Rejects with ConfigError if the
 * file has problems.
 */
export async function checkConfig(file: string, { strict = false, connect = false }: CheckOptions): Promise<number> {
  const config = await loadConfig(file, processEnvironment());
  for (const warning of config.warnings) remark(warning);
  const isRefused = strict && config.warnings.length > 0;
  const counted = `${inNumber(config.plans.size, 'plan')}, ${inNumber(config.routes.length, 'route')}`;
  if (!isRefused) await print(`${file} is valid: ${counted}.\n`);
  const isConnected = !connect || (await isConnectable(config, strict));
  return isRefused || !isConnected ? EXIT.failure : EXIT.success;
}

/** Prints a line for each finding, made printable because servers and certificates supply parts of its text. */
async function isConnectable(config: Config, strict: boolean): Promise<boolean> {
  const { tryConnections } = await import('../process/try-connections.ts');
  const findings = await tryConnections(config);
  const lines = findings.map(({ subject, outcome, text }) => printable(`${subject}: ${outcome}: ${text}`));
  await print(`${lines.join('\n')}\n`);
  return findings.every(({ outcome }) => outcome === 'ok' || (outcome === 'warning' && !strict));
}
