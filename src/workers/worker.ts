/**
 * A worker: one data plane, and the channel to the primary. It does what the primary tells it, signals included: those
 * that a terminal or a service manager sends to all processes are the primary's to act on. Without the primary it ends.
 */
import { isDeepStrictEqual } from 'node:util';
import { systemClock, systemScheduler } from '../clock.ts';
import type { Config } from '../config/config.ts';
import { type DataPlane, openDataPlane, type ServingFacts } from '../data-plane.ts';
import { createLogger, type Logger } from '../observability/logger.ts';
import { openLog, openObservedStore } from '../runtime.ts';
import { readVersion } from '../version.ts';
import { type Answers, type Question, readToWorker, type ToPrimary } from './messages.ts';
import { SharedFailures } from './shared-failures.ts';

/** A worker that is killed takes with it what it counted since then. */
const METRICS_INTERVAL_MS = 2000;
const FACTS_INTERVAL_MS = 200;

interface Running {
  readonly dataPlane: DataPlane;
  readonly logger: Logger;
  /** One report after the other, so that the last one is the latest. */
  tellMetrics(): Promise<void>;
  /** Drains, closes all but the channel, and reports for the last time. */
  finish(drainMs: number): Promise<void>;
}

/** Resolves to the exit status when the primary has had it end. */
export function runWorker(): Promise<number> {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  return new Promise((resolve, reject) => {
    let starting: Promise<Running | undefined> = Promise.resolve(undefined);
    const startOrEnd = async (place: number, config: Config): Promise<Running | undefined> => {
      try {
        return await start(place, config);
      } catch (error) {
        await sent({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) });
        resolve(1);
        return undefined;
      }
    };
    const act = async (message: unknown): Promise<void> => {
      const told = readToWorker(message);
      if (told.kind === 'start') {
        starting = startOrEnd(told.place, told.config);
        return;
      }
      const running = await starting;
      switch (told.kind) {
        case 'ask':
          return await reply(told.id, told.question, running);
        case 'failures':
          for (const [block, failures] of told.failures) running?.dataPlane.learnFailures(block, failures);
          return;
        case 'begin_drain':
          return running?.dataPlane.beginDrain();
        case 'finish':
          await running?.finish(told.drainMs);
          resolve(0);
      }
    };
    process.on('message', (message) => void act(message).catch(reject));
    send({ kind: 'hello' });
  });
}

async function start(place: number, config: Config): Promise<Running> {
  const clock = systemClock;
  await using opened = new AsyncDisposableStack();
  const { destination, droppedLines } = openLog(opened, { shared: true, format: config.logging.format });
  const logger = createLogger({ level: config.logging.level, destination }).child({ worker: place });
  const upstreams = () => dataPlane.facts().upstreams;
  const highestUsage = (count: number) => dataPlane.highestUsage(count);
  const [version, startedAtMs] = [readVersion(), clock.nowMs()];
  const observed = { logger, clock, version, startedAtMs, droppedLines, upstreams, highestUsage };
  const { store, metrics } = await openObservedStore(config, observed, opened);
  const shared = new SharedFailures(
    (failures) => send({ kind: 'failures', failures: failures.map(([block, count]) => [block, count]) }),
    systemScheduler,
  );
  const dataPlane = await openDataPlane(config, {
    store,
    metrics,
    logger,
    destination,
    clock,
    keyFailed: (block) => shared.count(block),
  });
  opened.defer(() => dataPlane.close());
  const url = await dataPlane.listen();
  send({ kind: 'listening', url });

  let told: ServingFacts | undefined;
  const tellFacts = () => {
    const facts = dataPlane.facts();
    if (isDeepStrictEqual(facts, told)) return;
    told = facts;
    send({ kind: 'facts', facts });
  };
  tellFacts();
  const facts = setInterval(tellFacts, FACTS_INTERVAL_MS);
  opened.defer(() => clearInterval(facts));
  let reported: Promise<void> = Promise.resolve();
  const tellMetrics = () => {
    reported = reported.then(async () => sent({ kind: 'metrics', snapshot: await metrics.snapshot() }));
    return reported;
  };
  const telling = setInterval(() => void tellMetrics(), METRICS_INTERVAL_MS);
  opened.defer(() => clearInterval(telling));

  const running = opened.move();
  return {
    dataPlane,
    logger,
    tellMetrics,
    async finish(drainMs) {
      await dataPlane.drain(drainMs);
      await running.disposeAsync();
      await tellMetrics();
    },
  };
}

async function reply(id: number, question: Question, running: Running | undefined): Promise<void> {
  if (running === undefined) return send({ kind: 'no_answer', id });
  try {
    send({ kind: 'answer', id, value: await answer(question, running) });
  } catch (error) {
    running.logger.error({ err: error, about: question.about }, 'a worker cannot do what it is asked');
    send({ kind: 'no_answer', id });
  }
}

async function answer(question: Question, { dataPlane, tellMetrics }: Running): Promise<Answers[Question['about']]> {
  switch (question.about) {
    case 'follow':
      await dataPlane.follow(question.config);
      send({ kind: 'facts', facts: dataPlane.facts() });
      return undefined;
    case 'metrics':
      await tellMetrics();
      return undefined;
    case 'held':
      return dataPlane.held(question.customer);
    case 'refusals':
      return dataPlane.refusals(question.customer);
  }
}

function send(message: ToPrimary): void {
  void sent(message);
}

/** Resolves when it is with the system; also when there is nobody left to hear it, which ends this process anyway. */
function sent(message: ToPrimary): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}
