/**
 * Replays recorded requests of customers against an hourly limit, by the arithmetic that the stores use. Each request
 * reserves one unit when it arrives, with the hold of a short lease: near a limit, the store decides requests in this
 * way. Leases, which far from a limit shift a unit by up to a bucket, are not replayed.
 */
import { MemoryHash } from '../store/memory-hash.ts';
import { HOURLY, reserve } from '../store/window-arithmetic.ts';
import { SHORT_LEASE } from './lease.ts';

/** A constant: a replay has no refunds, which would name it. */
const EPOCH = 'replay';

/** One customer's window, and what the replay counted. Memory is bounded by the buckets of the window. */
export class ReplayedCustomer {
  readonly customer: string;
  /** Plan and limit of the latest request. */
  plan: string;
  limit: number;
  requests = 0;
  refused = 0;
  /** Requests that the gateway refused when they were recorded. */
  refusedInLog = 0;
  /** Arrival of the first request that the replay refused; Unix ms. */
  firstRefusedMs: number | undefined;
  readonly #window = new MemoryHash();

  constructor(customer: string, plan: string, limit: number) {
    this.customer = customer;
    this.plan = plan;
    this.limit = limit;
  }

  /** Replays `requests` that arrived at `atMs`. Times must not decrease. */
  replay(atMs: number, requests: number): void {
    const request = { need: requests, ahead: 0, limit: this.limit, holdMs: SHORT_LEASE.holdMs, refunds: [] };
    const { granted } = reserve(this.#window, HOURLY, atMs, request, EPOCH);
    this.requests += requests;
    if (granted === requests) return;
    this.refused += requests - granted;
    this.firstRefusedMs ??= atMs;
  }
}
