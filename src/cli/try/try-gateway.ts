/** `tollgate try`: a gateway in front of a backend on this machine, with an embedded store that ends with it. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Document } from 'yaml';
import { PORTAL_SCOPES } from '../../api/admin/allowed-values.ts';
import { AdminClient } from '../../api/client/admin-client.ts';
import { processEnvironment } from '../../config/environment.ts';
import { loadConfig } from '../../config/load.ts';
import { hostOf } from '../../formats/host.ts';
import { isLoopback } from '../../formats/url.ts';
import { tryUpstreams } from '../../process/try-connections.ts';
import { EXIT, UsageError } from '../exit-status.ts';
import { print } from '../output.ts';
import { receiveSignals } from '../process-signals.ts';
import { runGateway } from '../start.ts';
import { banner, type DemoKey } from './banner.ts';
import { makeLocal, productionConfig } from './config-from-template.ts';
import { type FoundPorts, findFreePorts } from './free-ports.ts';
import { saveInstallation } from './save-installation.ts';
import { readUserApi, type TriedApi } from './tried-api.ts';

interface TryOptions {
  readonly openapi?: string;
  readonly requestsPerHour?: number;
  readonly keyHeader?: string;
  readonly port?: number;
  readonly save?: string;
}

interface Trial {
  readonly api: TriedApi;
  readonly config: Document;
  readonly keyHeader: string;
  /** The admin token; undefined if the user set it. */
  readonly newToken: string | undefined;
  readonly stopping: AbortSignal;
}

/** For the public, ops, admin and portal listener. */
const PORT_VARIABLES = ['PORT', 'OPS_PORT', 'ADMIN_PORT', 'PORTAL_PORT'];
const FIRST_PORT = 8080;
const TOKEN_VARIABLE = 'TOLLGATE_ADMIN_TOKEN';
/** Aborts what the drain has not ended by then. */
const STOP_WITHIN_MS = 900;

/** Runs until a signal, and leaves nothing behind. With `save`, writes the files for production instead. */
export async function tryGateway(
  backendUrl: string | undefined,
  options: TryOptions,
  startSample?: () => Promise<TriedApi>,
): Promise<number> {
  const { openapi, keyHeader = 'Authorization', save } = options;
  const wanted = wantedPorts(options.port);
  const startDefault = openapi === undefined && save === undefined ? startSample : undefined;
  const api = await (backendUrl === undefined ? startDefault?.() : readUserApi(backendUrl, openapi));
  if (api === undefined) throw new UsageError('give the URL of your backend, such as http://localhost:3000');
  const config = await productionConfig(api, options);
  if (save !== undefined) {
    await saveInstallation(save, { api, config, keyHeader });
    await print(`${join(save, 'README.md')} says how to start Tollgate in front of ${api.name}.\n`);
    return EXIT.success;
  }

  const environment = processEnvironment();
  const newToken = environment[TOKEN_VARIABLE] ? undefined : randomBytes(24).toString('base64url');
  // The config refers to the variable, and a reload reads it again.
  environment[TOKEN_VARIABLE] ||= newToken;
  const trial = { api, config, keyHeader, newToken, stopping: stopSignal() };
  const avoided = isLoopback(hostOf(api.url)) ? Number(api.url.port) || undefined : undefined;
  let found = await findFreePorts(wanted, avoided);
  for (;;) {
    try {
      return await run(trial, found);
    } catch (error) {
      const { ports, skipped } = await findFreePorts(found.ports, avoided);
      // Otherwise another program took a port meanwhile.
      if (String(ports) === String(found.ports)) throw error;
      found = { ports, skipped: [...found.skipped, ...skipped] };
    }
  }
}

function wantedPorts(first: number | undefined): number[] {
  const environment = processEnvironment();
  return PORT_VARIABLES.map((variable, index) => {
    const text = index === 0 && first !== undefined ? '' : environment[variable];
    if (!text) return first ?? FIRST_PORT;
    if (!/^\d{1,5}$/.test(text)) throw new UsageError(`the variable ${variable} must be a port number`);
    return Number(text);
  });
}

/** Returns what a signal aborts. The process ends soon after that. Call it before anything is created. */
function stopSignal(): AbortSignal {
  const terminal = new AbortController();
  process.once('SIGHUP', () => terminal.abort());
  const stopping = AbortSignal.any([receiveSignals(), terminal.signal]);
  stopping.addEventListener('abort', () => setTimeout(() => process.exit(EXIT.success), STOP_WITHIN_MS).unref());
  return stopping;
}

async function run({ api, config: document, stopping, ...shown }: Trial, found: FoundPorts): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-try-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'gateway.yaml');
  makeLocal(document, api.url, found.ports);
  await writeFile(file, String(document));
  const environment = processEnvironment();
  const config = await loadConfig(file, environment);
  const triedUpstreams = tryUpstreams(config);
  let keys: readonly DemoKey[] = [];
  let portalLink = '';
  return runGateway(config, {
    stopping,
    // The public port opens when the customers exist: before that, their keys would get 401.
    async beforeListening({ admin = '' }) {
      const token = environment[TOKEN_VARIABLE] ?? '';
      const client = new AdminClient({ url: admin, token, tokenSource: TOKEN_VARIABLE });
      keys = await createCustomers(client, api);
      const [{ id }] = api.customers;
      const session = { scopes: [...PORTAL_SCOPES], user: 'tollgate try' };
      portalLink = (await client.call('POST /admin/v1/customers/:id/portal-sessions', { id, body: session })).url;
    },
    // Must not reject: the gateway serves, and would keep its ports.
    async onStarted(addresses) {
      const [upstream] = await triedUpstreams;
      const fault = upstream?.outcome === 'error' ? upstream.text : undefined;
      process.stdout.write(banner({ ...shown, api, keys, addresses, portalLink, file, skipped: found.skipped, fault }));
    },
  });
}

/** Creates the customers, each with a key. */
async function createCustomers(client: AdminClient, { customers }: TriedApi): Promise<DemoKey[]> {
  const keys: DemoKey[] = [];
  for (const { key: value, ...customer } of customers) {
    const { id, plan, limit } = await client.call('POST /admin/v1/customers', { body: customer });
    const { key = value ?? '' } = await client.call('POST /admin/v1/customers/:id/keys', { id, body: { value } });
    keys.push({ value: key, plan, limit });
  }
  return keys;
}
