/** Checks that the store and the upstreams of a config can be used, before a gateway is started with it. */
import { setTimeout } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import { withoutUserInfo } from '../config/disclose.ts';
import { countCustomersWithoutPlan } from '../reload/customers-without-plan.ts';
import { tryStore } from '../store/open/try-store.ts';
import type { Store, StoreFinding } from '../store/store.ts';
import { parseStoreUrl } from '../store/store-address.ts';
import { tryUpstream } from '../upstream/try-upstream.ts';
import { withStore } from './configured-store.ts';

/** Bounds the whole attempt at a store: sentinels and cluster members are tried one after the other. */
const STORE_TIMEOUT_MS = 10_000;
/** Bounds the count of customers. */
const COUNT_TIMEOUT_MS = 60_000;

interface ConnectionFinding extends StoreFinding {
  /** Such as `store redis://redis:6379`; without secrets. */
  readonly subject: string;
}

/** Tries the store, then each upstream, with at least one finding for each. Writes nothing, and never rejects. */
export async function tryConnections(config: Config): Promise<readonly ConnectionFinding[]> {
  const [store, ...upstreams] = await Promise.all([tryStoreOf(config), ...tryUpstreamsOf(config)]);
  const isUsable = store.every(({ outcome }) => outcome !== 'error');
  return [...store, ...(isUsable ? await findingsOfPlans(config) : []), ...upstreams];
}

async function tryStoreOf({ store }: Config): Promise<ConnectionFinding[]> {
  const subject = `store ${withoutUserInfo(store.url)}`;
  const late: StoreFinding = { outcome: 'error', text: `no result within ${STORE_TIMEOUT_MS / 1000} s` };
  const findings = await Promise.race([tryStore(store), setTimeout(STORE_TIMEOUT_MS, [late], { ref: false })]);
  return findings.map((finding) => ({ subject, ...finding }));
}

/**
 * Finds customers on plans that the file lacks: a reload refuses such a file, but a start with it does not. Not in the
 * embedded store: opening its file would write to it.
 */
async function findingsOfPlans(config: Config): Promise<ConnectionFinding[]> {
  if (parseStoreUrl(config.store.url).kind === 'sqlite') return [];
  const subject = 'plans of the customers';
  try {
    const count = ({ records }: Store) =>
      countCustomersWithoutPlan(config, records, AbortSignal.timeout(COUNT_TIMEOUT_MS));
    const { customers, plans } = await withStore(config, count, { readOnly: true, warn() {} });
    if (customers === 0) return [];
    const text = `customers on plans that are not configured: ${customers} (${plans.join(', ')}); their requests get 403`;
    return [{ subject, outcome: 'error', text }];
  } catch (error) {
    return [{ subject, outcome: 'warning', text: `not counted: ${error instanceof Error ? error.message : error}` }];
  }
}

function tryUpstreamsOf({ upstream }: Config): Promise<ConnectionFinding>[] {
  const { urls, healthCheck } = upstream;
  return urls.map(async (url): Promise<ConnectionFinding> => {
    const subject = `upstream ${url}`;
    const startedMs = performance.now();
    const fault = await tryUpstream(new URL(url), { ...upstream, maxHeaderBytes: upstream.responseHeaderBytes });
    if (fault !== undefined) return { subject, outcome: 'error', text: fault };
    const done = healthCheck ? `health check ${healthCheck.path} passed` : 'connected';
    return { subject, outcome: 'ok', text: `${done} in ${Math.round(performance.now() - startedMs)} ms` };
  });
}
