/**
 * Applies a changed config file while the gateway runs: completely, or not at all.
 *
 * A file is refused if it is invalid, changes a setting that needs a restart, or drops a plan that customers are on.
 * The gateway then keeps its config and reports why. A file that needs a restart is not applied in part either, because
 * no file would then contain the running config.
 *
 * Reloads run one at a time. A change found by watching is reported once for each content and reason; a requested
 * reload is reported each time.
 */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import { inNumber } from '../../base/in-number.ts';
import type { Config, ConfigSource } from '../../config/config.ts';
import { type ConfigChange, configChanges, MAX_LISTED_CHANGES } from '../../config/config-changes.ts';
import { ConfigError } from '../../config/problems.ts';
import { type LimitPolicy, planNameOf } from '../../customers/quota/effective-limit.ts';
import type { Logger } from '../../observability/logger.ts';
import type { Metrics, ReloadResult } from '../../observability/metrics.ts';
import { StoreUnavailableError } from '../../store/errors.ts';
import { countByPlan } from './customers.ts';
import { assessImpact, type ImpactParts, type LimitChange, limitChange } from './impact.ts';

/** `noticed`: found by watching the file, not requested. */
export type ReloadTrigger = 'noticed' | 'signal' | 'admin';

export interface ReloadOutcome {
  readonly result: ReloadResult;
  /** Of the config that runs afterwards. */
  readonly hash: string;
  /** What the file changes. All of it is in effect if `result` is `applied`, and none of it otherwise. */
  readonly changes: readonly ConfigChange[];
  /** Why the file was not applied. Each entry can be read on its own. */
  readonly problems: readonly string[];
  /** Of the config that runs afterwards, as in `Config.warnings`. */
  readonly warnings: readonly string[];
}

export interface LastReload extends ReloadOutcome {
  /** Wall time in ms. */
  readonly atMs: number;
}

interface ReloaderOptions extends ImpactParts {
  readonly running: Config;
  /** Wall time in ms at which `running` was loaded. */
  readonly runningSinceMs: number;
  /** Reads the file. Rejects with ConfigError. */
  readonly read: () => Promise<Uint8Array>;
  /** Returns the digest of the content and of the current named files, as in {@link ConfigSource}. */
  readonly digestOf: (content: Uint8Array, namedFiles: ConfigSource['namedFiles']) => Promise<string>;
  /** Must not block the event loop. Rejects with ConfigError, or when `signal` aborts. */
  readonly parse: (content: Uint8Array, signal: AbortSignal) => Promise<Config>;
  /** Applies the config at once and completely; or rejects, and nothing has changed. */
  readonly apply: (config: Config) => Promise<void>;
  readonly metrics: Pick<Metrics, 'configReloaded'>;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Interval at which the customers of a dropped plan are counted again, unless a reload is requested. */
const RECOUNT_MS = 60_000;
const MAX_IN_MESSAGE = 3;
const STOPPING = 'the gateway is being stopped';

/** The last attempt, to recognise a repetition. */
interface LastAttempt extends Pick<ReloadOutcome, 'result' | 'problems'> {
  readonly digest: string;
  readonly atMs: number;
}

export class Reloader {
  readonly #options: ReloaderOptions;
  readonly #closing = new AbortController();
  #running: Config;
  #loadedAtMs: number;
  /** Content of the file that runs, once this object has read it. */
  #runningText: string | undefined;
  #lastReported: LastReload | undefined;
  #lastAttempt: LastAttempt | undefined;
  /** The result of parsing the last file that differed from the running one. */
  #parsed: { readonly source: ConfigSource; readonly result: Config | ConfigError } | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: ReloaderOptions) {
    this.#options = options;
    this.#running = options.running;
    this.#loadedAtMs = options.runningSinceMs;
  }

  get running(): Config {
    return this.#running;
  }

  /** Wall time in ms of the last reported reload that applied the file or found it unchanged; else of the start. */
  get loadedAtMs(): number {
    return this.#loadedAtMs;
  }

  /** The last reload that was reported. */
  get last(): LastReload | undefined {
    return this.#lastReported;
  }

  /** Reads the file, and applies it if it has changed. Never rejects. */
  reload(trigger: ReloadTrigger): Promise<ReloadOutcome> {
    const reload = this.#queue.then(() => this.#attempt(trigger));
    this.#queue = reload;
    return reload;
  }

  /** Aborts parsing and starts no more reloads. Resolves when the one in progress has ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#queue;
  }

  async #attempt(trigger: ReloadTrigger): Promise<ReloadOutcome> {
    if (this.#closing.signal.aborted) return this.#outcome('failed', [], [STOPPING]);
    const before = this.#running;
    let digest = '';
    let outcome: ReloadOutcome;
    try {
      const content = await this.#options.read();
      digest = createHash('sha256').update(content).digest('hex');
      outcome = (await this.#isSame(this.#running.source, content))
        ? this.#outcome('unchanged', [], [])
        : await this.#decideAndApply(await this.#parse(content, trigger), trigger, digest);
      if (!isRefusal(outcome.result)) this.#runningText = latin1(content);
    } catch (error) {
      if (this.#closing.signal.aborted) return this.#outcome('failed', [], [STOPPING]);
      outcome = this.#failure(error);
    }
    outcome = { ...outcome, hash: this.#running.hash, warnings: this.#running.warnings };
    if (!this.#shouldReport(trigger, digest, outcome)) return outcome;
    this.#report(trigger, outcome);
    if (outcome.result === 'applied') void this.#reportLimitChanges(before, this.#running);
    return outcome;
  }

  async #isSame({ digest, namedFiles }: ConfigSource, content: Uint8Array): Promise<boolean> {
    return digest === (await this.#options.digestOf(content, namedFiles));
  }

  /** Parsing is costly: unless requested, a refused file is parsed again only after it, or a file it names, changed. */
  async #parse(content: Uint8Array, trigger: ReloadTrigger): Promise<Config> {
    this.#refuseTruncated(latin1(content));
    if (trigger !== 'noticed' || !this.#parsed || !(await this.#isSame(this.#parsed.source, content))) {
      const result = await this.#options.parse(content, this.#closing.signal).catch((error: unknown) => {
        if (error instanceof ConfigError) return error;
        throw error;
      });
      const source = result.source ?? { namedFiles: [], digest: await this.#options.digestOf(content, []) };
      this.#parsed = { source, result };
    }
    const { result } = this.#parsed;
    if (result instanceof ConfigError) throw result;
    return result;
  }

  async #decideAndApply(next: Config, trigger: ReloadTrigger, digest: string): Promise<ReloadOutcome> {
    const outcome = await this.#decide(next, trigger, digest);
    if (outcome.result === 'applied') await this.#options.apply(next);
    if (!isRefusal(outcome.result)) {
      // Even if no setting has changed: line numbers and the digest of the source may have.
      this.#running = next;
      this.#parsed = undefined;
    }
    return outcome;
  }

  async #decide(next: Config, trigger: ReloadTrigger, digest: string): Promise<ReloadOutcome> {
    const changes = configChanges(this.#running, next);
    if (changes.length === 0) return this.#outcome('unchanged', [], []);
    const fixed = changes.filter(({ takesEffect }) => takesEffect === 'restart');
    const problems = fixed.map(({ text }) => `${text}: needs a restart`);
    if (this.#running.backends.size > 0 !== next.backends.size > 0) {
      problems.push(
        'upstream: the first backend is added, or the last removed, and with it the public listener: needs a restart',
      );
    }
    if (problems.length > 0) {
      return this.#outcome('restart_required', changes, problems);
    }
    const dropped = droppedPlans(this.#running, next);
    if (dropped.size === 0) return this.#outcome('applied', changes, []);
    const { clock, records } = this.#options;
    const last = this.#lastAttempt;
    const isRepeated = trigger === 'noticed' && last?.digest === digest && last.result === 'plan_in_use';
    if (isRepeated && clock.monotonicMs() - last.atMs < RECOUNT_MS) {
      return this.#outcome('plan_in_use', changes, last.problems);
    }
    const counts = [...(await countByPlan((plan) => dropped.has(plan), records))];
    const drops = counts.map(
      ([plan, count]) =>
        `plans.${plan}: ${inNumber(count, 'customer is', 'customers are')} on this plan, which the file drops; ` +
        `move them, or give ${plan} under "formerly" of another plan`,
    );
    return this.#outcome(drops.length > 0 ? 'plan_in_use' : 'applied', changes, drops);
  }

  /** Refuses a file that is the running one, truncated within a line: writing it has not finished, or has failed. */
  #refuseTruncated(text: string): void {
    const running = this.#runningText;
    if (running === undefined || text.length >= running.length || !running.startsWith(text)) return;
    if (text === '' || text.endsWith('\n') || running[text.length] === '\n' || running[text.length] === '\r') return;
    const line = text.split('\n').length;
    const what = 'is the running file, truncated within this line; write the whole file';
    throw ConfigError.of(this.#running.file, [{ line, path: [], what }]);
  }

  #failure(error: unknown): ReloadOutcome {
    if (error instanceof ConfigError) return this.#outcome('invalid', [], error.problems);
    if (error instanceof StoreUnavailableError) {
      const problem =
        'the file drops a plan, and the store is unavailable, so the customers on that plan cannot be counted';
      return this.#outcome('unverified', [], [problem]);
    }
    this.#options.logger.error({ err: error }, 'the configuration could not be reloaded');
    return this.#outcome('failed', [], ['an internal error; see the log']);
  }

  #outcome(result: ReloadResult, changes: readonly ConfigChange[], problems: readonly string[]): ReloadOutcome {
    return { result, hash: this.#running.hash, changes, problems, warnings: this.#running.warnings };
  }

  #shouldReport(trigger: ReloadTrigger, digest: string, { result, problems }: ReloadOutcome): boolean {
    const last = this.#lastAttempt;
    const nowMs = this.#options.clock.monotonicMs();
    const isSame = last?.digest === digest && last.result === result && isDeepStrictEqual(last.problems, problems);
    // Keeps the time of the last count of customers, which `#decide` repeats after RECOUNT_MS.
    const isUncounted = isSame && result === 'plan_in_use' && nowMs - last.atMs < RECOUNT_MS;
    if (!isUncounted) this.#lastAttempt = { digest, result, problems, atMs: nowMs };
    if (trigger !== 'noticed' || result === 'applied') return true;
    // Not reported: the first check finds the file of the start, and a check after a reload finds the applied file.
    if (result === 'unchanged') return last !== undefined && (last.digest !== digest || isRefusal(last.result));
    return !isSame;
  }

  #report(trigger: ReloadTrigger, outcome: ReloadOutcome): void {
    const { clock, logger, metrics } = this.#options;
    const { result, hash, problems } = outcome;
    const changes = outcome.changes.slice(0, MAX_LISTED_CHANGES).map(({ text }) => text);
    const atMs = clock.nowMs();
    if (!isRefusal(result)) this.#loadedAtMs = atMs;
    const endsRefusals = this.#lastReported !== undefined && isRefusal(this.#lastReported.result);
    this.#lastReported = { ...outcome, atMs };
    metrics.configReloaded(result, { hash, loadedAtMs: this.#loadedAtMs });
    const facts = { trigger, result, config: this.#running.file, config_hash: hash };
    switch (result) {
      case 'applied':
        logger.info({ ...facts, changes }, `configuration reloaded: ${inOneLine(changes)}`);
        for (const warning of outcome.warnings) logger.warn(warning);
        return;
      case 'unchanged':
        // Not worth a log line: an editor saved without a change, or changed only comments.
        if (trigger === 'noticed' && !endsRefusals) return;
        logger.info(facts, 'configuration unchanged: the file equals the running configuration');
        return;
      default:
        logger.error(
          { ...facts, ...(changes.length > 0 && { changes }), problems },
          `configuration refused, the running one stays in use: ${inOneLine(problems)}`,
        );
    }
  }

  /** Logs which customers the new limits affect. Runs after the reload, because counting the customers takes time. */
  async #reportLimitChanges(before: Config, after: Config): Promise<void> {
    const { logger } = this.#options;
    const { signal } = this.#closing;
    try {
      const { groups, overrides } = await assessImpact(before, after, this.#options, { changedOnly: true, signal });
      for (const { label, customers, refused, ...limits } of groups) {
        const above = inNumber(refused, 'customer is', 'customers are');
        logger.info({ ...limitFields(limits), customers, above_now: refused }, `${label}: ${above} above it now`);
      }
      for (const { customer, used, ...limits } of overrides) {
        const change = limitChange(limits);
        logger.info({ customer, ...limitFields(limits), used }, `the limit of customer ${customer} changes: ${change}`);
      }
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error }, 'could not determine which customers the new limits affect');
    }
  }
}

function isRefusal(result: ReloadResult): boolean {
  return result !== 'applied' && result !== 'unchanged';
}

function limitFields({ plan, window, before, after }: LimitChange) {
  return plan === undefined ? { window } : { plan, window, before: before ?? null, after: after ?? null };
}

/** Returns plan names, former ones included, that customer records may contain and the next config does not know. */
export function droppedPlans(before: LimitPolicy, after: LimitPolicy): ReadonlySet<string> {
  const known = [...before.plans.keys(), ...before.formerPlans.keys()];
  return new Set(known.filter((plan) => planNameOf(plan, after) === undefined));
}

/** Decodes each byte as one character, whatever the encoding. */
function latin1(content: Uint8Array): string {
  return Buffer.from(content).toString('latin1');
}

function inOneLine(texts: readonly string[]): string {
  const more = texts.length - MAX_IN_MESSAGE;
  return [...texts.slice(0, MAX_IN_MESSAGE), ...(more > 0 ? [`${more} more`] : [])].join('; ');
}
