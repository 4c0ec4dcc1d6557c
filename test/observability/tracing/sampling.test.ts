import { describe, expect, it } from 'vitest';
import { newTraceId, randomnessOf } from '../../../src/observability/tracing/trace-context.ts';
import { Tracing } from '../../../src/observability/tracing/tracing.ts';
import { bearer } from '../../support/admin.ts';
import { startSystem } from '../../support/system.ts';
import { startCollector } from './collector.ts';

const PARENT = '00f067aa0ba902b7';
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PROXY = '10.0.0.1';
/** Sampled from a ratio of this on. */
const NEEDED_RATIO = 1 - randomnessOf(TRACE);

async function openTracing(options: { ratio: number; trustParent?: boolean; random?: () => number }) {
  const tracing = new Tracing({
    version: '1.2.3',
    instanceId: 'i',
    spansDropped: () => {},
    logger: { warn: () => {} } as never,
    clock: { nowMs: () => Date.now(), monotonicMs: () => performance.now() },
    random: options.random ?? Math.random,
  });
  const { ratio: sampleRatio, trustParent = false } = options;
  const endpoint = 'http://127.0.0.1:9/v1/traces';
  await tracing.apply({ endpoint, exportHeaders: {}, sampleRatio, trustParent, customer: false });
  return {
    sample(traceparent?: string, peer = '192.0.2.1') {
      const headers = traceparent === undefined ? {} : { traceparent };
      const req = { headers, method: 'GET', httpVersion: '1.1', rawHeaders: [], socket: { remoteAddress: peer } };
      const proxies = { has: (address: string) => address === PROXY };
      return tracing.sample({ req: req as never, method: 'GET', client: { proto: 'http' }, route: 'none' }, proxies)
        ?.traceId;
    },
  };
}

describe('a new trace', () => {
  it('is sampled at the given ratio', async () => {
    for (const ratio of [0, 0.01, 0.3, 1]) {
      let drawn = 0;
      const { sample } = await openTracing({ ratio, random: () => drawn++ / 1000 });
      let sampled = 0;
      for (let i = 0; i < 1000; i++) sampled += sample() === undefined ? 0 : 1;
      expect(sampled).toBe(1000 * ratio);
    }
  });

  it('has an id by which others that sample with the same ratio decide the same', async () => {
    const { sample } = await openTracing({ ratio: 0.3 });
    const ids = Array.from({ length: 1000 }, () => sample()).filter((id) => id !== undefined);
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{32}$/);
      expect(sample(`00-${id}-${PARENT}-00`, PROXY)).toBe(id);
    }
    expect(new Set(ids).size).toBe(ids.length);
  });

  it.each([0, 2 ** -52, 0.5, 1 - 2 ** -52])('gets an id with the randomness %s that decided about it', (randomness) => {
    expect(newTraceId(randomness)).toMatch(/^[0-9a-f]{32}$/);
    expect(randomnessOf(newTraceId(randomness))).toBe(randomness);
  });
});

describe('a trace that others have begun', () => {
  it('is kept where a client asks for it, which cannot force or prevent a sample by its id or flag', async () => {
    let random = 0;
    const { sample } = await openTracing({ ratio: 0.5, trustParent: true, random: () => random });
    for (const trace of ['f'.repeat(32), TRACE, `${'0'.repeat(31)}1`]) {
      for (const flags of ['00', '01']) {
        random = 0.49;
        expect(sample(`00-${trace}-${PARENT}-${flags}`)).toBeUndefined();
        random = 0.5;
        expect(sample(`00-${trace}-${PARENT}-${flags}`)).toBe(trace);
      }
    }
  });

  it.each(['00', '01'])(
    'is sampled by its id alone if a trusted proxy passes it, whatever its flags %s',
    async (flags) => {
      const traceparent = `00-${TRACE}-${PARENT}-${flags}`;
      const below = await openTracing({ ratio: NEEDED_RATIO - 0.001, random: () => 1 });
      const above = await openTracing({ ratio: NEEDED_RATIO + 0.001, random: () => 0 });
      for (let i = 0; i < 10; i++) {
        expect(below.sample(traceparent, PROXY)).toBeUndefined();
        expect(above.sample(traceparent, PROXY)).toBe(TRACE);
      }
    },
  );

  it('is never sampled at ratio 0, and always at ratio 1', async () => {
    const [never, always] = [await openTracing({ ratio: 0 }), await openTracing({ ratio: 1 })];
    for (const trace of ['f'.repeat(32), `${'0'.repeat(31)}1`]) {
      expect(never.sample(`00-${trace}-${PARENT}-01`)).toBeUndefined();
      expect(always.sample(`00-${trace}-${PARENT}-00`)).toBe(trace);
    }
  });

  it('is decided by its flag with trust_parent, but only from a trusted proxy', async () => {
    const [none, all] = await Promise.all([0, 1].map((ratio) => openTracing({ ratio, trustParent: true })));
    expect(none?.sample(`00-${TRACE}-${PARENT}-01`, '10.0.0.1')).toBe(TRACE);
    expect(all?.sample(`00-${TRACE}-${PARENT}-00`, '10.0.0.1')).toBeUndefined();
    expect(none?.sample(`00-${TRACE}-${PARENT}-01`)).toBeUndefined();
    expect(all?.sample(`00-${TRACE}-${PARENT}-00`)).toBe(TRACE);
    // Without a valid context there is no flag.
    expect(all?.sample('mine', '10.0.0.1')).toBeDefined();
    expect(none?.sample(undefined, '10.0.0.1')).toBeUndefined();
  });
});

it.each([`00-${TRACE}-${PARENT}-01`, `00-${TRACE}-${PARENT}-00`, 'mine'])(
  'a request that is not sampled passes its context %s as it is, and no span is exported',
  async (traceparent) => {
    const collector = await startCollector();
    const config = { tracing: { endpoint: collector.endpoint, sample_ratio: 0 } };
    const { backend, gateway, key } = await startSystem({ config });
    const context = { traceparent, tracestate: 'vendor=1,other=a b' };
    await (await fetch(`${gateway.public}/v1/conversations`, { headers: { ...bearer(key), ...context } })).text();
    await gateway.close();
    expect(backend.seen[0]?.headers).toMatchObject(context);
    expect(collector.exports).toBe(0);
  },
);

it('trust_parent follows the flag of a proxy in trusted_proxies', async () => {
  const collector = await startCollector();
  const config = {
    listen: { trusted_proxies: ['127.0.0.1'] },
    tracing: { endpoint: collector.endpoint, sample_ratio: 0, trust_parent: true },
  };
  const { gateway, key } = await startSystem({ config });
  for (const flags of ['00', '01']) {
    const headers = { ...bearer(key), traceparent: `00-${TRACE}-${PARENT}-${flags}` };
    await (await fetch(`${gateway.public}/v1/conversations`, { headers })).text();
  }
  await gateway.close();
  expect(collector.spans.filter(({ kind }) => kind === 'server')).toMatchObject([{ traceId: TRACE }]);
});
