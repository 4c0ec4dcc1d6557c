import { isDeepStrictEqual } from 'node:util';
import { systemScheduler } from '../base/clock.ts';
import { Backend, type BackendLoad, type BackendOptions } from './backend.ts';
import { lookupAddresses } from './http1/addresses.ts';
import { type ConnectOptions, createConnect } from './http1/connect.ts';
import type { UpstreamStatus } from './upstream.ts';

/** Settings of one backend on which its connections and its health depend. */
interface BackendSettings
  extends Pick<
    BackendOptions,
    'balance' | 'healthCheck' | 'maxConnections' | 'maxConnectionsPerCustomer' | 'reuseAfterBody'
  > {
  /** See {@link BackendOptions.urls}. */
  readonly urls: readonly string[];
  readonly connectTimeoutMs: number;
  /** See {@link BackendOptions.maxHeaderBytes}. */
  readonly responseHeaderBytes: number;
  /** See {@link createConnect}. */
  readonly tls?: ConnectOptions['tls'];
}

interface BackendsOptions extends Pick<BackendOptions, 'observer' | 'clock'> {
  /** Returns the maximum of requests in progress; a reload can change it. */
  readonly maxInFlight: () => number;
}

interface OpenBackend {
  readonly settings: BackendSettings;
  readonly load: BackendLoad;
  readonly backend: Backend;
}

/** A backend whose settings differ in another member keeps its connections. */
const CONNECTION_SETTINGS = Object.keys({
  balance: true,
  connectTimeoutMs: true,
  healthCheck: true,
  maxConnections: true,
  maxConnectionsPerCustomer: true,
  responseHeaderBytes: true,
  reuseAfterBody: true,
  tls: true,
  urls: true,
} satisfies Record<keyof BackendSettings, true>) as (keyof BackendSettings)[];

function areConnectionsSame(former: BackendSettings, settings: BackendSettings): boolean {
  return CONNECTION_SETTINGS.every((key) => isDeepStrictEqual(former[key], settings[key]));
}

/** A backend has work for so long after its latest request: at low load, it often has no request in progress. */
const HAS_WORK_MS = 10_000;

/**
 * The backends of a gateway by name. They share nothing but the maximum of requests in progress: while another backend
 * has work, the requests of one are at most half of it, so that a backend that hangs leaves room for the others.
 */
export class Backends {
  readonly #options: BackendsOptions;
  #open: ReadonlyMap<string, OpenBackend> = new Map();
  #upstreamCount = 1;

  constructor(options: BackendsOptions) {
    this.#options = options;
  }

  /** Opens and closes backends. One whose {@link BackendSettings} are unchanged keeps its connections and its health. */
  apply(settings: ReadonlyMap<string, BackendSettings>): void {
    const former = this.#open;
    this.#upstreamCount = [...settings.values()].reduce((count, { urls }) => count + urls.length, 0);
    this.#open = new Map([...settings].map(([name, each]) => [name, this.#opened(name, each, former.get(name))]));
    for (const [name, { backend }] of former) if (this.#open.get(name)?.backend !== backend) void backend.close();
  }

  /** @throws Error if there is no such backend. */
  get(name: string): Backend {
    const open = this.#open.get(name);
    if (open === undefined) throw new Error(`there is no backend ${name}`);
    return open.backend;
  }

  /** Returns the state of each upstream, by backend, in the order of the configuration. */
  status(): UpstreamStatus[] {
    return [...this.#open.values()].flatMap(({ backend }) => backend.status());
  }

  /** Resolves when all requests have ended and the connections are closed. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ backend }) => backend.close()));
  }

  #opened(name: string, settings: BackendSettings, former: OpenBackend | undefined): OpenBackend {
    if (former && areConnectionsSame(former.settings, settings)) return former;
    const load = former?.load ?? { inFlight: 0, latestAtMs: Number.NEGATIVE_INFINITY };
    return { settings, load, backend: this.#create(name, settings, load) };
  }

  /** Apart from {@link #opened}: the functions below keep all variables of this one, which must not be a former backend. */
  #create(name: string, settings: BackendSettings, load: BackendLoad): Backend {
    const { maxInFlight } = this.#options;
    return new Backend({
      ...this.#options,
      ...settings,
      backend: name,
      maxHeaderBytes: settings.responseHeaderBytes,
      urls: settings.urls.map((url) => new URL(url)),
      connectTo: (url, lookup) => createConnect(url, settings.connectTimeoutMs, { lookup, tls: settings.tls }),
      // The rest of `maxInFlight` is left for other customers.
      maxWaitingPerCustomer: () => Math.ceil(maxInFlight() / 2 / this.#upstreamCount),
      load,
      isWithinShare: (load) => this.#isWithinShare(load),
      lookup: lookupAddresses,
      scheduler: systemScheduler,
    });
  }

  #isWithinShare(load: BackendLoad): boolean {
    if (load.inFlight <= Math.ceil(this.#options.maxInFlight() / 2)) return true;
    const sinceMs = load.latestAtMs - HAS_WORK_MS;
    for (const { load: other } of this.#open.values()) {
      if (other !== load && (other.inFlight > 0 || other.latestAtMs > sinceMs)) return false;
    }
    return true;
  }
}
