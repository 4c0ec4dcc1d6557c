import { once } from 'node:events';
import type { Config, SeedCustomer } from '../config/config.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { startGateway } from '../process/gateway.ts';
import { type Gateway, type GatewayAddresses, workerCount } from '../process/lifecycle.ts';

type LogFormat = Config['logging']['format'];

/** npm forwards signals to its script, so a signal to the whole process group arrives twice within this time. */
const COPY_BY_NPM_WITHIN_MS = 1000;

/**
 * Runs the gateway until the first SIGTERM or SIGINT, then drains. SIGHUP reloads the configuration. A second SIGTERM
 * or SIGINT ends the process at once, for exitAtOnce users at a terminal. `logFormat` replaces the file's format.
 */
export async function start(file: string, logFormat?: LogFormat): Promise<number> {
  const environment = processEnvironment();
  const loaded = await loadConfig(file, environment);
  const config = logFormat ? { ...loaded, logging: { ...loaded.logging, format: logFormat } } : loaded;
  // Handled from the start, because an unhandled SIGHUP ends the process.
  let reload: Gateway['reload'] | undefined;
  process.on('SIGHUP', () => void reload?.('signal'));
  const gateway = await (workerCount(config) > 1 ? startWithWorkers(config) : startGateway(config));
  reload = gateway.reload;
  if (config.seed) {
    const banner = quickStartBanner(config.seed.customers, gateway.addresses, environment.QUICK_START_TOKEN);
    process.stdout.write(banner);
  }
  await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  const signalledMs = performance.now();
  const exitAtOnce = () => {
    const isCopy = 'npm_lifecycle_event' in environment && performance.now() - signalledMs < COPY_BY_NPM_WITHIN_MS;
    if (!isCopy) process.exit(1);
  };
  process.on('SIGTERM', exitAtOnce).on('SIGINT', exitAtOnce);
  await gateway.close();
  return 0;
}

/** Imports the worker code only if there are workers. */
async function startWithWorkers(config: Config): Promise<Gateway> {
  const { startPrimary } = await import('../process/workers/primary.ts');
  return startPrimary(config);
}

/**
 * Returns a banner with the console's address and first commands to try, as lines that can be copied. `adminToken`: the
 * token that was generated for this start; undefined if there is another or none.
 */
function quickStartBanner(
  customers: readonly SeedCustomer[],
  addresses: GatewayAddresses,
  adminToken: string | undefined,
): string {
  const [first] = customers;
  const list = customers.map(({ key, plan, requestsPerHour }) => {
    const own = requestsPerHour === undefined ? '' : ` (${requestsPerHour} requests an hour of its own)`;
    return `    ${key.padEnd(22)} ${plan}${own}`;
  });
  const token =
    adminToken === undefined ? 'the admin token (TOLLGATE_ADMIN_TOKEN)' : `this start's admin token: ${adminToken}`;
  return `
  Tollgate is running, with a sample backend and one demo customer per plan:
${list.join('\n')}

  Console: ${addresses.admin}/console
    Log in with ${token}

  Try:
    curl -i -H 'Authorization: Bearer ${first?.key ?? ''}' '${addresses.public}/v1/conversations?limit=2'
    curl -i ${addresses.public}/v1/conversations
    curl -s ${addresses.ops}/readyz
    curl -s ${addresses.ops}/metrics | grep ^tollgate_

  Ctrl-C stops it. The log follows, with one line per request.

`;
}
