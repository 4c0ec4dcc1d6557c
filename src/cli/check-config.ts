import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';

/** Prints one line for a good file; problems reach the caller as a ConfigError. */
export async function checkConfig(file: string): Promise<number> {
  const config = await loadConfig(file, processEnvironment());
  process.stdout.write(`${file} is valid: ${config.plans.size} plans, ${config.routes.length} routes.\n`);
  return 0;
}
