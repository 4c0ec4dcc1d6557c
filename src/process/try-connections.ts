/** Checks that the store and the upstreams of a config can be used, before a gateway is started with it. */
import { setTimeout } from 'node:timers/promises';
import type { BackendConfig, Config } from '../config/config.ts';
import { withoutUserInfo } from '../config/disclose.ts';
import { countCustomersWithoutPlan } from '../control/reload/customers-without-plan.ts';
import { isValidKey } from '../customers/keys/key-state.ts';
import { parseStoreUrl } from '../formats/store-address.ts';
import { tryStore } from '../store/open/try-store.ts';
import type { RecordStore } from '../store/records.ts';
import type { Store, StoreFinding } from '../store/store.ts';
import { tryUpstream } from '../upstream/try-upstream.ts';
import { withStore } from './configured-store.ts';

/** Bounds the whole attempt at a store: sentinels and cluster members are tried one after the other. */
const STORE_TIMEOUT_MS = 10_000;
/** Bounds each reading of all customers or keys. */
const COUNT_TIMEOUT_MS = 60_000;
const KEYS_AT_ONCE = 1000;
/** Scopes that a finding names. */
const MAX_LISTED = 10;

interface ConnectionFinding extends StoreFinding {
  /** Such as `store redis://redis:6379`; without secrets. */
  readonly subject: string;
}

/** Tries the store, then each upstream, with at least one finding for each. Writes nothing, and never rejects. */
export async function tryConnections(config: Config): Promise<readonly ConnectionFinding[]> {
  const [store, upstreams] = await Promise.all([tryStoreOf(config), tryUpstreams(config)]);
  const isUsable = store.every(({ outcome }) => outcome !== 'error');
  return [...store, ...(isUsable ? await findingsOfRecords(config) : []), ...upstreams];
}

async function tryStoreOf({ store }: Config): Promise<ConnectionFinding[]> {
  const subject = `store ${withoutUserInfo(store.url)}`;
  const late: StoreFinding = { outcome: 'error', text: `no result within ${STORE_TIMEOUT_MS / 1000} s` };
  const findings = await Promise.race([tryStore(store), setTimeout(STORE_TIMEOUT_MS, [late], { ref: false })]);
  return findings.map(({ outcome, text }) => ({
    subject,
    outcome,
    text: outcome === 'error' ? text + adviceFor('store', store.url, text) : text,
  }));
}

const UNKNOWN_ISSUER = /self-signed certificate|unable to (?:get|verify)/;
const CLOSED_BY_PEER = /ECONNRESET|Connection is closed|closed the connection/;
const NOT_TLS = /wrong version number|packet length|connect ETIMEDOUT/;

/** Returns what to do about an error that is probably due to TLS, as a clause; empty text for any other error. */
function adviceFor(section: string, url: string, error: string): string {
  const [scheme = ''] = url.split(':', 1);
  const plain = scheme.replace(/^(redis|http)s/, '$1');
  if (UNKNOWN_ISSUER.test(error)) return `; name the CA that issued its certificate in ${section}.tls.ca_file`;
  if (scheme !== plain) return NOT_TLS.test(error) ? `; if it does not use TLS, write ${plain}://` : '';
  const secure = scheme.replace(/^(redis|http)/, '$1s');
  return secure !== plain && CLOSED_BY_PEER.test(error) ? `; if it uses TLS, write ${secure}://` : '';
}

/** Compares the records with the file. Not in the embedded store: opening its file would write to it. */
async function findingsOfRecords(config: Config): Promise<ConnectionFinding[]> {
  if (parseStoreUrl(config.store.url).kind === 'sqlite') return [];
  const found: ConnectionFinding[] = [];
  for (const [subject, find] of [
    ['plans of the customers', plansNotConfigured],
    ['scopes of the keys', scopesWithoutRoute],
  ] as const) {
    try {
      const signal = AbortSignal.timeout(COUNT_TIMEOUT_MS);
      const work = ({ records }: Store) => find(config, records, signal);
      const finding = await withStore(config, work, { readOnly: true, warn() {} });
      if (finding) found.push({ subject, ...finding });
    } catch (error) {
      const text = `not counted: ${error instanceof Error ? error.message : error}`;
      found.push({ subject, outcome: 'warning', text });
    }
  }
  return found;
}

type FindInRecords = (config: Config, records: RecordStore, signal: AbortSignal) => Promise<StoreFinding | undefined>;

/** A reload refuses such a file, but a start with it does not. */
const plansNotConfigured: FindInRecords = async (config, records, signal) => {
  const { customers, plans } = await countCustomersWithoutPlan(config, records, signal);
  if (customers === 0) return undefined;
  const text = `customers on plans that are not configured: ${customers} (${plans.join(', ')}); their requests get 403`;
  return { outcome: 'error', text };
};

/** Finds scopes of valid keys that no route has: one of the two is probably mistyped. */
const scopesWithoutRoute: FindInRecords = async ({ routes }, records, signal) => {
  const ofRoutes = new Set(routes.map(({ scope }) => scope));
  const unknown = new Set<string>();
  let keys = 0;
  let cursor: string | undefined;
  do {
    signal.throwIfAborted();
    const { items, next } = await records.listKeys(cursor, KEYS_AT_ONCE);
    for (const key of items) {
      const others = key.scopes?.filter((scope) => !ofRoutes.has(scope)) ?? [];
      if (others.length === 0 || !isValidKey(key, Date.now())) continue;
      keys += 1;
      for (const scope of others) if (unknown.size < MAX_LISTED) unknown.add(scope);
    }
    cursor = next;
  } while (cursor !== undefined);
  if (keys === 0) return undefined;
  return { outcome: 'warning', text: `keys with scopes that no route has: ${keys} (${[...unknown].join(', ')})` };
};

/** Tries each upstream. Never rejects. */
export async function tryUpstreams({ backends }: Config): Promise<ConnectionFinding[]> {
  return Promise.all(
    [...backends].flatMap(([name, backend]) => backend.urls.map((url) => tryUpstreamOf(name, url, backend))),
  );
}

async function tryUpstreamOf(name: string, url: string, backend: BackendConfig): Promise<ConnectionFinding> {
  const { healthCheck, responseHeaderBytes: maxHeaderBytes } = backend;
  const subject = `upstream ${url}${name === 'default' ? '' : ` of backend ${name}`}`;
  const startedMs = performance.now();
  const fault = await tryUpstream(new URL(url), { ...backend, maxHeaderBytes });
  if (fault !== undefined) {
    const section = name === 'default' ? 'upstream' : `upstreams.${name}`;
    return { subject, outcome: 'error', text: fault + adviceFor(section, url, fault) };
  }
  const done = healthCheck ? `health check ${healthCheck.path} passed` : 'connected';
  return { subject, outcome: 'ok', text: `${done} in ${Math.round(performance.now() - startedMs)} ms` };
}
