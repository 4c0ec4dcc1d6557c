import { once } from 'node:events';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { startGateway } from '../gateway.ts';
import { quickStartBanner } from './quick-start-banner.ts';

/**
 * Runs the gateway until the first SIGTERM or SIGINT, then drains. A second signal ends the process at once, for
 * whoever sits at the terminal.
 */
export async function start(file: string): Promise<number> {
  const config = await loadConfig(file, processEnvironment());
  const gateway = await startGateway(config);
  if (config.seed) process.stdout.write(quickStartBanner(config.seed.customers, gateway.addresses));
  await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  const impatient = () => process.exit(1);
  process.once('SIGTERM', impatient).once('SIGINT', impatient);
  await gateway.close();
  return 0;
}
