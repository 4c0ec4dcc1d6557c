import type { LookupAddress } from 'node:dns';
import { lookup as systemLookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import type { Scheduler } from '../../base/clock.ts';
import { Periodic } from '../../base/periodic.ts';

/** Resolves to all addresses of a name, the preferred ones first. */
export type Lookup = (hostname: string) => Promise<readonly LookupAddress[]>;

/** Uses the system's resolver, /etc/hosts included. */
export const lookupAddresses: Lookup = (hostname) => systemLookup(hostname, { all: true });

const LOOKUP_INTERVAL_MS = 5_000;
/** Some name servers return a few of many addresses at a time, so an address must be missing repeatedly. */
const MISSES_TO_VANISH = 3;

interface AddressesOptions {
  readonly hostname: string;
  readonly lookup: Lookup;
  readonly scheduler: Pick<Scheduler, 'after'>;
  /** Called when addresses were removed. `isKnown` returns whether an address remains. */
  vanished(isKnown: (address: string) => boolean): void;
}

/**
 * The addresses of one name, looked up at intervals rather than per connection. While lookups fail, the last addresses
 * stay in use: an unavailable name server is no reason to lose an available upstream.
 */
export class Addresses {
  readonly #options: AddressesOptions;
  #current: readonly LookupAddress[] = [];
  /** Known addresses, and how many lookups in a row each has been missing from. */
  readonly #missedLookups = new Map<string, number>();
  #lookupInProgress: Promise<void> | undefined;
  #turn = 0;
  readonly #lookups: Periodic;
  #isClosed = false;

  constructor(options: AddressesOptions) {
    this.#options = options;
    this.#lookups = new Periodic(options.scheduler, () => {
      const next = () => LOOKUP_INTERVAL_MS;
      return this.#refresh().then(next, next);
    });
    this.#lookups.start(LOOKUP_INTERVAL_MS);
  }

  close(): void {
    this.#isClosed = true;
    void this.#lookups.close();
  }

  /**
   * For `net.connect`, which accepts several addresses only with `autoSelectFamily`. Spreads connections over all of
   * them.
   */
  readonly lookup: LookupFunction = (_hostname, _options, callback) => {
    if (this.#current.length > 0) {
      process.nextTick(callback, null, this.#rotated());
      return;
    }
    this.#refresh().then(
      () => callback(null, this.#rotated()),
      (error) => callback(error, []),
    );
  };

  /** Runs one lookup at a time; concurrent calls share it. */
  #refresh(): Promise<void> {
    this.#lookupInProgress ??= this.#options
      .lookup(this.#options.hostname)
      .then((addresses) => this.#update(addresses))
      .finally(() => {
        this.#lookupInProgress = undefined;
      });
    return this.#lookupInProgress;
  }

  #update(addresses: readonly LookupAddress[]): void {
    if (addresses.length === 0) return;
    this.#current = addresses;
    let hasVanished = false;
    for (const [address, missed] of this.#missedLookups) {
      this.#missedLookups.set(address, missed + 1);
      if (missed + 1 < MISSES_TO_VANISH) continue;
      if (addresses.some((each) => each.address === address)) continue;
      this.#missedLookups.delete(address);
      hasVanished = true;
    }
    for (const { address } of addresses) this.#missedLookups.set(address, 0);
    if (hasVanished && !this.#isClosed) this.#options.vanished((address) => this.#missedLookups.has(address));
  }

  /** Returns all addresses, each time with another one first, of the family that the resolver prefers (RFC 6724). */
  #rotated(): LookupAddress[] {
    const family = this.#current[0]?.family;
    const preferred = this.#current.filter((each) => each.family === family);
    const others = this.#current.filter((each) => each.family !== family);
    const first = this.#turn++ % preferred.length;
    return [...preferred.slice(first), ...preferred.slice(0, first), ...others];
  }
}
