/** What SPIN explores: the correct protocol in several scenes, and wrong protocols that it must refute. */

export type Property = 'window' | 'history' | 'period' | 'key';

export interface Scene {
  readonly name: string;
  readonly file: 'leases.pml' | 'outage.pml' | 'charges.pml';
  /** Macros of the model, for the preprocessor. */
  readonly macros: readonly string[];
  readonly properties: readonly Property[];
}

export interface Mutant {
  /** The macro is `MUTANT_` and this name. */
  readonly name: string;
  readonly scene: Scene;
  /** Must be violated. */
  readonly property: Property;
}

const leases: Scene = { name: 'leases', file: 'leases.pml', macros: [], properties: ['window', 'history'] };
const oneLeaseEach: Scene = { ...leases, name: 'one lease each', macros: ['ONE_LEASE_EACH'] };
const twoHolds: Scene = {
  ...leases,
  name: 'two holds',
  macros: [...oneLeaseEach.macros, 'WINDOW=6', 'BUCKET=3', 'HOLD=3', 'SHORT_HOLD=2'],
};
const exactClocks: Scene = { ...oneLeaseEach, macros: [...oneLeaseEach.macros, 'DRIFT=0'] };
const epochs: Scene = { ...leases, name: 'epochs', macros: ['ONE_LEASE_EACH', 'RESETS', 'DRIFT=0'] };
const failover: Scene = {
  name: 'failover',
  file: 'leases.pml',
  macros: ['ONE_LEASE_EACH', 'FAILOVER', 'DRIFT=0'],
  properties: ['window'],
};
const period: Scene = {
  ...exactClocks,
  name: 'hour and period',
  macros: [...exactClocks.macros, 'WINDOW=1', 'BUCKET=1', 'HOLD=1', 'PERIOD=5', 'PERIOD_LIMIT=3', 'GRACE=1'],
  properties: ['window', 'history', 'period'],
};
const key: Scene = {
  ...exactClocks,
  name: 'a key with a limit',
  macros: [...exactClocks.macros, 'WINDOW=2', 'BUCKET=1', 'HOLD=1', 'KEY_LIMIT=1'],
  properties: ['window', 'history', 'key'],
};
const outage: Scene = {
  name: 'outage, both gateways',
  file: 'outage.pml',
  macros: ['WINDOW=3', 'BUCKET=1', 'HOLD=1'],
  properties: ['window'],
};
const longBuckets: Scene = { ...outage, name: 'outage, one gateway', macros: ['LOCAL=1'] };

const charges: Scene = { name: 'charges', file: 'charges.pml', macros: [], properties: ['history'] };

/** The longest first. */
export const SCENES: readonly Scene[] = [leases, failover, twoHolds, epochs, period, key, outage, longBuckets, charges];

export const MUTANTS: readonly Mutant[] = [
  { name: 'HOLD_FROM_REPLY', scene: exactClocks, property: 'window' },
  { name: 'NO_DRIFT_MARGIN', scene: oneLeaseEach, property: 'window' },
  { name: 'ONE_CLOCK', scene: oneLeaseEach, property: 'window' },
  { name: 'BEGIN_UNCHECKED', scene: exactClocks, property: 'window' },
  { name: 'UNIT_TO_NEWER_LEASE', scene: leases, property: 'window' },
  { name: 'BUCKET_OF_GRANT', scene: exactClocks, property: 'window' },
  { name: 'DROPPED_EARLY', scene: exactClocks, property: 'window' },
  { name: 'CHECK_THEN_COUNT', scene: exactClocks, property: 'window' },
  { name: 'APPLIED_WITHOUT_NOTING', scene: exactClocks, property: 'window' },
  { name: 'FORGOTTEN_TOO_EARLY', scene: exactClocks, property: 'history' },
  { name: 'VOID_FORGOTTEN', scene: exactClocks, property: 'history' },
  { name: 'REFUND_ONCE', scene: exactClocks, property: 'history' },
  { name: 'REFUND_BEGUN', scene: exactClocks, property: 'window' },
  { name: 'REFUND_ADMITTED', scene: exactClocks, property: 'window' },
  { name: 'REFUND_ANY_EPOCH', scene: epochs, property: 'window' },
  { name: 'LATE_REPLY_DROPPED', scene: exactClocks, property: 'history' },
  { name: 'HISTORY_OF_THIS_EPOCH', scene: epochs, property: 'history' },
  { name: 'HISTORY_OF_ANY_LINEAGE', scene: epochs, property: 'history' },
  { name: 'HOUR_ALONE', scene: period, property: 'period' },
  { name: 'LARGER_LIMIT', scene: period, property: 'period' },
  { name: 'REFUSAL_COUNTS', scene: period, property: 'history' },
  { name: 'PERIOD_OF_GATEWAY', scene: period, property: 'period' },
  { name: 'REFUND_TO_PRESENT', scene: period, property: 'period' },
  { name: 'REFUND_TO_CLOSED', scene: period, property: 'history' },
  { name: 'KEY_ALONE', scene: key, property: 'window' },
  { name: 'KEY_UNCOUNTED', scene: key, property: 'key' },
  { name: 'KEY_BUCKET_OF_GRANT', scene: key, property: 'key' },
  { name: 'LARGER_OF_KEY', scene: key, property: 'key' },
  { name: 'REFUSAL_OF_KEY_COUNTS', scene: key, property: 'history' },
  { name: 'REFUND_TO_ANY_KEY', scene: key, property: 'key' },
  { name: 'USAGE_UNTIL_REPLY', scene: outage, property: 'window' },
  { name: 'LOCAL_WINDOW_AFRESH', scene: outage, property: 'window' },
  { name: 'LOCAL_BUCKET_OF_ADMISSION', scene: outage, property: 'window' },
  { name: 'UNKNOWN_CHARGE_DROPPED', scene: outage, property: 'window' },
  { name: 'CHARGE_WITH_NEW_ID', scene: charges, property: 'history' },
  { name: 'REFUND_BEFORE_ANSWER', scene: charges, property: 'history' },
  { name: 'CHARGE_FORGOTTEN', scene: charges, property: 'history' },
];
