/** A steady mixture of clients, and their results. */
import { Agent, type ClientRequest, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { Customer } from '../../bench/customers.ts';
import { LIST_PATH } from '../../bench/surroundings.ts';
import { createApiKey } from '../../src/formats/api-key.ts';
import type { Dice } from '../simulator/dice.ts';
import { type ClientKind, judge, type Outcome } from './verdict.ts';

export interface CallersSettings {
  readonly origin: string;
  readonly good: readonly Customer[];
  readonly spent: readonly Customer[];
  readonly dice: Dice;
  /** Longer than any deadline of the gateway. */
  readonly deadlineMs: number;
}

const LOOPS = 24;
/** Maximum time from a response to the next request. */
const PAUSE_MS = 30;
const ABORT_WITHIN_MS = 20;

export class Clients {
  /** By what was wrong: how often. */
  readonly violations = new Map<string, number>();
  /** By status or what came instead. */
  readonly outcomes = new Map<string, number>();
  requests = 0;
  /** For the report: before, during and after which fault it is. */
  round = '';
  /** The share of clients that disconnect. */
  abortShare = 0.03;
  readonly #settings: CallersSettings;
  #agent = new Agent();
  #isDuringFault = false;
  /** Counts changes between broken and whole. */
  #phase = 0;
  #running: Promise<unknown> | undefined;
  #isStopping = false;

  constructor(settings: CallersSettings) {
    this.#settings = settings;
  }

  /** Whether something is broken from now on. */
  set duringFault(isDuringFault: boolean) {
    this.#isDuringFault = isDuringFault;
    this.#phase++;
  }

  start(): void {
    this.#isStopping = false;
    this.#agent = new Agent({ keepAlive: true, maxSockets: LOOPS });
    this.#running = Promise.all(Array.from({ length: LOOPS }, () => this.#loop()));
  }

  /** Lets requests in progress end, then closes the connections. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
    this.#agent.destroy();
  }

  /** One request of a good key, outside the count. */
  probe(): Promise<Outcome> {
    return this.#call('good', this.#pick(this.#settings.good).key, new Agent());
  }

  async #loop(): Promise<void> {
    const { dice } = this.#settings;
    while (!this.#isStopping) {
      const kind = this.#pickKind();
      const [wasDuringFault, phase] = [this.#isDuringFault, this.#phase];
      const outcome = await this.#call(kind, this.#keyOf(kind), this.#agent);
      this.requests++;
      increment(this.outcomes, outcome.kind === 'response' ? String(outcome.status) : outcome.kind);
      const violation = judge(kind, outcome, wasDuringFault || phase !== this.#phase);
      if (violation !== undefined) increment(this.violations, `${violation} (${this.round})`);
      await setTimeout(dice.between(0, PAUSE_MS));
    }
  }

  #pickKind(): ClientKind {
    const roll = this.#settings.dice.next();
    if (roll < this.abortShare) return 'aborting';
    if (roll > 0.98) return 'unknown';
    return roll > 0.93 ? 'spent' : 'good';
  }

  #keyOf(kind: ClientKind): string {
    if (kind === 'unknown') return createApiKey();
    return this.#pick(kind === 'spent' ? this.#settings.spent : this.#settings.good).key;
  }

  #pick(customers: readonly Customer[]): Customer {
    const picked = customers[Math.floor(this.#settings.dice.between(0, customers.length))];
    if (picked === undefined) throw new RangeError('no customers');
    return picked;
  }

  #call(kind: ClientKind, key: string, agent: Agent): Promise<Outcome> {
    const { origin, dice, deadlineMs } = this.#settings;
    return new Promise((resolve) => {
      const outgoing: ClientRequest = request(`${origin}${LIST_PATH}`, {
        agent,
        headers: { authorization: `Bearer ${key}` },
      });
      const timers = new AbortController();
      const settle = (outcome: Outcome) => {
        timers.abort();
        resolve(outcome);
      };
      const endAfter = (delayMs: number, outcome: Outcome) => {
        const { signal } = timers;
        setTimeout(delayMs, undefined, { signal }).then(
          () => {
            settle(outcome);
            outgoing.destroy();
          },
          () => undefined,
        );
      };
      endAfter(deadlineMs, { kind: 'late' });
      if (kind === 'aborting') endAfter(dice.between(0, ABORT_WITHIN_MS), { kind: 'aborted' });
      outgoing.on('error', () => settle({ kind: 'cut' }));
      outgoing.on('response', (response) => {
        response.on('error', () => settle({ kind: 'cut' }));
        response.on('close', () => settle({ kind: 'cut' }));
        response.on('end', () => {
          const { statusCode = 0, headers } = response;
          settle({ kind: 'response', status: statusCode, contentType: headers['content-type'] ?? '' });
        });
        response.resume();
      });
      outgoing.end();
    });
  }
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
