/**
 * Bounds the deliveries in progress to customers' own endpoints. A receiver that does not respond occupies its place for
 * 15 seconds, so receivers of one host must not occupy all places, and those of all customers none of the operator's.
 */
import { hostOf } from '../base/host-name.ts';

const MAX_PLACES = 60;
const MAX_PLACES_PER_HOST = 20;

export class CustomerPlaces {
  readonly #takenByHost = new Map<string, number>();
  #taken = 0;

  /** Takes a place for a delivery to a URL. Returns a function that frees it; undefined if no place is free. */
  take(url: string): (() => void) | undefined {
    const host = hostOf(new URL(url));
    const taken = this.#takenByHost.get(host) ?? 0;
    if (this.#taken >= MAX_PLACES || taken >= MAX_PLACES_PER_HOST) return undefined;
    this.#taken += 1;
    this.#takenByHost.set(host, taken + 1);
    return () => {
      this.#taken -= 1;
      const left = (this.#takenByHost.get(host) ?? 1) - 1;
      if (left > 0) this.#takenByHost.set(host, left);
      else this.#takenByHost.delete(host);
    };
  }
}
