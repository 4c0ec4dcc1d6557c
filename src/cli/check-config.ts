import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { EXIT } from './exit-status.ts';
import { remark } from './output.ts';

export interface CheckOptions {
  /** Warnings are errors. */
  readonly strict?: boolean;
}

/** Prints one line for a good file, and its warnings; problems reach the caller as a ConfigError. */
export async function checkConfig(file: string, { strict = false }: CheckOptions): Promise<number> {
  const config = await loadConfig(file, processEnvironment());
  for (const warning of config.warnings) remark(warning);
  if (strict && config.warnings.length > 0) return EXIT.failure;
  process.stdout.write(`${file} is valid: ${config.plans.size} plans, ${config.routes.length} routes.\n`);
  return EXIT.success;
}
