import { expect, it } from 'vitest';
import { assessReadiness } from '../../../src/control/ops/readiness.ts';

const READY = {
  draining: false,
  store: { reached: true, up: true, wiped: false, empty: false, evicted: false, refusing: false },
  backendsUp: true,
};

it.each([
  ['everything is there', READY, 'ready', []],
  [
    'a store that was reached is lost',
    { ...READY, store: { ...READY.store, up: false } },
    'degraded',
    ['store_unreachable'],
  ],
  ['the store has lost its data', { ...READY, store: { ...READY.store, wiped: true } }, 'degraded', ['store_wiped']],
  ['the store has no record', { ...READY, store: { ...READY.store, empty: true } }, 'degraded', ['store_empty']],
  ['Redis evicted keys', { ...READY, store: { ...READY.store, evicted: true } }, 'degraded', ['store_evicted']],
  [
    'the store refuses reservations',
    { ...READY, store: { ...READY.store, refusing: true } },
    'degraded',
    ['store_refusing'],
  ],
  ['a backend has no upstream in service', { ...READY, backendsUp: false }, 'degraded', ['upstream_down']],
  [
    'the store was never reached',
    { ...READY, store: { ...READY.store, reached: false, up: false } },
    'not_ready',
    ['store_never_reached'],
  ],
  ['it drains', { ...READY, draining: true }, 'not_ready', ['draining']],
  [
    'it drains without a store',
    { ...READY, draining: true, store: { ...READY.store, up: false } },
    'not_ready',
    ['draining'],
  ],
] as const)('when %s', (_when, facts, status, reasons) => {
  expect(assessReadiness(facts)).toEqual({ status, reasons });
});
