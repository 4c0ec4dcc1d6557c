import { systemClock } from '../../src/base/clock.ts';

/** Surroundings of a store of whose calls and warnings a test reads nothing. */
export const silent = { clock: systemClock, observer: { called() {}, up() {} }, warn() {} };
