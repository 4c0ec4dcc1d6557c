/**
 * Decides which refused requests get their own line in the access log. A refusal costs its sender nothing, not even a
 * key, so a flood of refusals must not fill the disk.
 *
 * In each window, the first refusals of a sender with the same code are logged in full. The others are counted, and
 * summed up in one line when the window ends. Senders are customers, or the address blocks of clients that no key
 * identified. The lines of all senders together are limited, too. Above that limit, refusals of senders that are new in
 * this window are summed up by code alone, without an entry of their own: so the limit also bounds memory.
 */
import { blockOfCanonical } from '../formats/address-block.ts';

const LINES_PER_SENDER = 100;

interface RefusedRequest {
  readonly problem: string;
  readonly status: number;
  /** Undefined if no key identified a customer. */
  readonly customer?: string | undefined;
  readonly clientAddress: string;
}

/** Refusals with one code, of one customer or of one address block. The sum of all other senders has neither. */
interface Group {
  readonly problem: string;
  readonly status: number;
  readonly customer?: string | undefined;
  readonly clientBlock?: string | undefined;
  /** Refusals with their own line. */
  lines: number;
  /** Refusals without one. */
  requests: number;
}

export class RepeatedRefusals {
  readonly #maxLines: number;
  readonly #groups = new Map<string, Group>();
  #lines = 0;

  /** `maxLines`: limit for all senders together in a window. */
  constructor(maxLines: number) {
    this.#maxLines = maxLines;
  }

  /** Returns whether the request gets its own line; if not, counts it. */
  isLoggedInFull(request: RefusedRequest): boolean {
    const group = this.#groupOf(request);
    if (group.lines < LINES_PER_SENDER && this.#lines < this.#maxLines) {
      group.lines++;
      this.#lines++;
      return true;
    }
    group.requests++;
    return false;
  }

  /** Ends the window, and returns its sums. */
  endWindow(): readonly Group[] {
    const sums = [...this.#groups.values()].filter(({ requests }) => requests > 0);
    this.#groups.clear();
    this.#lines = 0;
    return sums;
  }

  #groupOf({ problem, status, customer, clientAddress }: RefusedRequest): Group {
    const clientBlock = customer === undefined ? blockOfCanonical(clientAddress) : undefined;
    const sender = `${problem} ${customer ?? clientBlock}`;
    const isNamed = this.#lines < this.#maxLines || this.#groups.has(sender);
    const name = isNamed ? sender : problem;
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { problem, status, ...(isNamed && { customer, clientBlock }), lines: 0, requests: 0 };
      this.#groups.set(name, group);
    }
    return group;
  }
}
