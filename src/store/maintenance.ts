import { parseTimestamp } from '../formats/timestamp.ts';
import { DamagedRecordError } from './errors.ts';
import { parseJsonObject } from './json-object.ts';

const MODES = ['off', 'read_only', 'down'] as const;

/** Which requests every instance refuses until an operator ends it, or until a given time. */
export interface Maintenance {
  /** `read_only` lets requests pass that change nothing. */
  readonly mode: (typeof MODES)[number];
  /** Templates of routes; undefined: all routes. */
  readonly routes?: readonly string[] | undefined;
  /** Wall time in ms; undefined: it has no end. */
  readonly untilMs?: number | undefined;
  /** For clients, in place of the default words. */
  readonly message?: string | undefined;
  /** Wall time in ms at which it began; undefined if the mode is `off`. */
  readonly sinceMs?: number | undefined;
}

export interface MaintenanceStore {
  /**
   * Resolves to undefined if none was ever set. Rejects with StoreUnavailableError, also if a missing record does not prove
   * that, because the store may have lost it.
   */
  read(): Promise<Maintenance | undefined>;
  /** Replaces the maintenance as a whole. All instances learn of it by {@link Invalidations}. */
  write(maintenance: Maintenance): Promise<void>;
}

export function formatMaintenance({ mode, routes, untilMs, message, sinceMs }: Maintenance): string {
  const time = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());
  return JSON.stringify({ mode, routes, until: time(untilMs), message, since: time(sinceMs) });
}

/** @throws DamagedRecordError for a text that {@link formatMaintenance} cannot have made. */
export function parseMaintenance(text: string): Maintenance {
  const { mode, routes, until, message, since } = parseJsonObject(text) ?? {};
  const known = MODES.find((each) => each === mode);
  const [untilMs, sinceMs] = [until, since].map((time) => parseTimestamp(String(time)));
  const isValid =
    (routes === undefined || (Array.isArray(routes) && routes.every((each) => typeof each === 'string'))) &&
    (message === undefined || typeof message === 'string') &&
    (until === undefined) === (untilMs === undefined);
  if (known === undefined || !isValid) throw new DamagedRecordError('the record of the maintenance cannot be read');
  return { mode: known, routes, untilMs, message, sinceMs } as Maintenance;
}

/** Returns the maintenance that is in force at this time; undefined if none is. `nowMs`: wall time. */
export function inForceAt(maintenance: Maintenance | undefined, nowMs: number): Maintenance | undefined {
  const { mode = 'off', untilMs = Number.POSITIVE_INFINITY } = maintenance ?? {};
  return mode === 'off' || nowMs >= untilMs ? undefined : maintenance;
}
