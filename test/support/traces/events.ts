/** What a traced gateway writes, one JSON document a line. `atMs`: wall time of the machine, the same for all processes. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Occurrence {
  readonly atMs: number;
  /** The window store of one gateway or worker: unique in a folder of traces. */
  readonly gateway: string;
  readonly customer: string;
}

/** A day or month, with its limit. */
interface TracedPeriod {
  /** Of the period, unique for its customer. */
  readonly name: string;
  readonly limit: number;
  readonly beyond: 'refuse' | 'allow';
}

/** The store's reply to a reservation. */
export interface Granted extends Occurrence {
  readonly event: 'granted';
  /** Its id. */
  readonly grant: string;
  /** When the reservation was sent. */
  readonly sentMs: number;
  readonly storeTimeMs: number;
  readonly granted: number;
  readonly used: number;
  readonly limit: number;
  readonly holdMs: number;
  readonly epoch: string;
  /** In which the units count, too; by the store's clock. */
  readonly period?: (TracedPeriod & { readonly used: number; readonly endMs: number }) | undefined;
}

/** A request is about to be written to the backend for the first time. */
export interface Begun extends Occurrence {
  readonly event: 'begun';
  /** Whose units it uses. `local`: of the gateway's own window, while the store is unavailable. */
  readonly grant: string;
  /** Of its route. */
  readonly units: number;
}

/** A refund is passed to the connection, perhaps again. */
export interface Refunded extends Occurrence {
  readonly event: 'refunded';
  /** The id of a grant or charge. */
  readonly grant: string;
  /** In total. */
  readonly units: number;
}

/** A request is admitted without the store. */
export interface AdmittedLocally extends Occurrence {
  readonly event: 'admitted locally';
  readonly limit: number;
  /** How many gateways share the limit. */
  readonly instances: number;
  /** Of its route. */
  readonly units: number;
  /** By the gateway's clock. `free`: at the store's last reply that had this period; undefined if there was none. */
  readonly period?: (TracedPeriod & { readonly free: number | undefined }) | undefined;
}

/** Units that were admitted without the store are counted by it, or may be: its reply was lost. Perhaps again. */
export interface Charged extends Occurrence {
  readonly event: 'charged';
  /** The id under which they are charged. */
  readonly grant: string;
  readonly units: number;
}

export type TraceEvent = Granted | Begun | Refunded | AdmittedLocally | Charged;

/** Reads the traces of all processes in a folder, in the order of time. The last line may be incomplete: a process was killed. */
export function readTraces(folder: string): TraceEvent[] {
  const events = readdirSync(folder).flatMap((file) => {
    const lines = readFileSync(join(folder, file), 'utf8').split('\n').slice(0, -1);
    return lines.map((line): TraceEvent => JSON.parse(line));
  });
  return events.toSorted((a, b) => a.atMs - b.atMs);
}
