import { isIP, type LookupFunction } from 'node:net';
import type { Scheduler } from '../base/clock.ts';
import { hostOf } from '../formats/host.ts';
import type { Balanced } from './balancer.ts';
import { Ejection, type EjectionReason } from './health/ejection.ts';
import { type HealthCheckConfig, HealthChecks } from './health/health-checks.ts';
import { Addresses, type Lookup } from './http1/addresses.ts';
import { authorityOf, type Connect, isUnix } from './http1/connect.ts';
import { ConnectionPool, type ConnectionPoolOptions } from './http1/connection-pool.ts';

/** State of an upstream, for operators. */
export interface UpstreamStatus {
  /** Name of its backend. */
  readonly backend: string;
  /** Origin and base path, as configured. */
  readonly url: string;
  /** Whether requests are sent to it. */
  readonly up: boolean;
  /** Why requests are not sent to it; undefined while they are. */
  readonly reason: EjectionReason | 'health_check' | undefined;
  /**
   * Last failure: of a health check if that is the `reason`, else of a request or connection. May contain addresses.
   */
  readonly fault: string | undefined;
}

/** What the upstreams of a backend have in common. The limits apply to each of them. */
export interface CommonUpstreamOptions extends Omit<ConnectionPoolOptions, 'connect' | 'onConnect'> {
  /** Name of the backend. */
  readonly backend: string;
  /** Returns a function that opens connections to `url`. `lookup`: omitted if the host is an IP address. */
  connectTo(url: URL, lookup: LookupFunction | undefined): Connect;
  /** Omitted: only requests and connections determine the upstream's health. */
  readonly healthCheck?: HealthCheckConfig | undefined;
  readonly lookup: Lookup;
  readonly scheduler: Scheduler;
}

interface UpstreamOptions extends CommonUpstreamOptions {
  /** An origin with an optional base path. */
  readonly url: URL;
  /** Returns whether the other upstreams can do without this one. */
  canBeSpared(): boolean;
  /** Called when {@link Upstream.isUp} has changed. */
  changed(upstream: Upstream): void;
}

/** One server of a backend: its connections and its health. */
export class Upstream implements Balanced {
  readonly url: string;
  readonly backend: string;
  /** For the log: without a scheme, but for a unix socket. */
  readonly name: string;
  /** Default value of the Host header. */
  readonly authority: string;
  /** Prefix of every request path, without a trailing "/"; often empty. */
  readonly basePath: string;
  readonly pool: ConnectionPool;
  readonly #ejection: Ejection;
  readonly #checks: HealthChecks | undefined;
  readonly #addresses: Addresses | undefined;
  isUp = true;
  #fault: string | undefined;

  constructor(options: UpstreamOptions) {
    const { url, healthCheck, lookup, maxHeaderBytes, scheduler } = options;
    this.backend = options.backend;
    this.authority = authorityOf(url);
    this.basePath = isUnix(url) || url.pathname === '/' ? '' : url.pathname;
    this.name = isUnix(url) ? url.href : this.authority + this.basePath;
    this.url = isUnix(url) ? url.href : url.origin + this.basePath;
    const hostname = hostOf(url);
    if (!isUnix(url) && isIP(hostname) === 0) {
      const vanished = (isKnown: (address: string) => boolean): void => this.pool.retire(isKnown);
      this.#addresses = new Addresses({ hostname, lookup, scheduler, vanished });
    }
    const connect = options.connectTo(url, this.#addresses?.lookup);
    this.pool = new ConnectionPool({ ...options, connect, onConnect: (error) => this.#connectEnded(error) });
    const changed = (): void => {
      const isUp = this.#ejection.reason === undefined && this.#checks?.isFailing !== true;
      if (isUp === this.isUp) return;
      this.isUp = isUp;
      options.changed(this);
    };
    this.#ejection = new Ejection({
      scheduler,
      canBeSpared: () => options.canBeSpared(),
      hasNoConnection: () => this.pool.openCount === 0,
      probe: () => this.pool.probe(),
      changed,
    });
    if (healthCheck) {
      const { authority } = this;
      this.#checks = new HealthChecks({ ...healthCheck, connect, authority, maxHeaderBytes, scheduler, changed });
    }
  }

  get load(): number {
    return this.pool.load;
  }

  status(): UpstreamStatus {
    const { reason } = this.#ejection;
    const common = { backend: this.backend, url: this.url, up: this.isUp };
    if (reason !== undefined) return { ...common, reason, fault: this.#fault };
    if (this.#checks?.isFailing) return { ...common, reason: 'health_check', fault: this.#checks.fault };
    return { ...common, reason: undefined, fault: undefined };
  }

  /** Records a complete response. 502 to 504 mean that the upstream cannot serve requests (RFC 9110 §15.6). */
  responded(status: number): void {
    if (status >= 502 && status <= 504) this.failed(`status ${status}`);
    else this.#ejection.succeeded();
  }

  /** Records that a request which was sent got no usable response. */
  failed(fault: string): void {
    this.#fault = fault;
    this.#ejection.failed();
  }

  /** Puts an upstream that was ejected as `failing` back into service: it may work, and no other is in service. */
  readmitFailing(): void {
    if (this.#ejection.reason === 'failing') this.#ejection.readmit();
  }

  /** Stops health checks and probes, and closes connections: see {@link ConnectionPool.close}. */
  async close(): Promise<void> {
    this.#checks?.close();
    this.#ejection.close();
    await this.pool.close();
    this.#addresses?.close();
  }

  #connectEnded(error: Error | undefined): void {
    if (error === undefined) {
      this.#ejection.connected();
      return;
    }
    this.#fault = error.message;
    this.#ejection.connectFailed();
  }
}
