/**
 * Bounds the deliveries in progress to customers' own endpoints. A receiver that does not respond occupies its place for
 * 15 seconds, so receivers of one host must not occupy all places, and those of all customers none of the operator's.
 */
import { hostOf } from '../../formats/host.ts';

const MAX_PLACES = 60;
const MAX_PLACES_PER_HOST = 20;

export class CustomerPlaces {
  /** The host of each delivery in progress. */
  readonly #hosts: string[] = [];

  /** Takes a place for a delivery to a URL. Returns a function that frees it; undefined if no place is free. */
  take(url: string): (() => void) | undefined {
    const host = hostOf(new URL(url));
    const ofHost = this.#hosts.filter((each) => each === host).length;
    if (this.#hosts.length >= MAX_PLACES || ofHost >= MAX_PLACES_PER_HOST) return undefined;
    this.#hosts.push(host);
    return () => void this.#hosts.splice(this.#hosts.indexOf(host), 1);
  }
}
