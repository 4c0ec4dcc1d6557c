/**
 * Which refused requests get a line of their own in the access log. A refusal costs its sender nothing, not even a key, so
 * a flood of them must not fill the disk.
 *
 * In each window, the first refusals of a sender with one code are logged in full; the further ones are counted, and
 * summed up in one line when the window ends. Senders are customers, or the address blocks of clients that no key
 * identified. There are more addresses than lines a disk can take, so the lines of all senders together are bounded too:
 * beyond that, refusals of senders that are new in this window are summed up by code alone. A sender is only remembered
 * with its first line, so that bound also bounds memory.
 */
import { addressBlock } from '../address-block.ts';
import type { ProblemCode } from '../problems/table.ts';

const LINES_PER_SENDER = 100;

export interface RefusedRequest {
  readonly problem: ProblemCode;
  readonly status: number;
  /** Undefined where no key identified one. */
  readonly customer?: string | undefined;
  readonly clientAddress: string;
}

/** Refusals with one code of a customer or of an address block; those of all other senders have neither. */
export interface RefusalSum {
  readonly problem: ProblemCode;
  readonly status: number;
  readonly customer?: string | undefined;
  readonly clientBlock?: string | undefined;
  /** Those without a line of their own. */
  readonly requests: number;
}

interface Group extends RefusalSum {
  lines: number;
  requests: number;
}

export class RepeatedRefusals {
  readonly #mostLines: number;
  readonly #groups = new Map<string, Group>();
  #lines = 0;

  /** `mostLines`: of all senders together in a window. */
  constructor(mostLines: number) {
    this.#mostLines = mostLines;
  }

  /** True when the request gets a line of its own; else it is counted. */
  isLoggedInFull(request: RefusedRequest): boolean {
    const group = this.#groupOf(request);
    if (group.lines < LINES_PER_SENDER && this.#lines < this.#mostLines) {
      group.lines++;
      this.#lines++;
      return true;
    }
    group.requests++;
    return false;
  }

  /** Ends the window, and returns what was counted in it. */
  endWindow(): readonly RefusalSum[] {
    const sums = [...this.#groups.values()].filter(({ requests }) => requests > 0);
    this.#groups.clear();
    this.#lines = 0;
    return sums;
  }

  #groupOf({ problem, status, customer, clientAddress }: RefusedRequest): Group {
    const clientBlock = customer === undefined ? addressBlock(clientAddress) : undefined;
    const known = this.#groups.get(`${problem} ${customer ?? clientBlock}`);
    if (known !== undefined) return known;
    const isNamed = this.#lines < this.#mostLines;
    const name = isNamed ? `${problem} ${customer ?? clientBlock}` : problem;
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { problem, status, ...(isNamed && { customer, clientBlock }), lines: 0, requests: 0 };
      this.#groups.set(name, group);
    }
    return group;
  }
}
