import { parseJsonObject } from './json-object.ts';
import { isTimeMs } from './usage-history.ts';

/** What an instance tells about itself when it announces itself. */
export interface InstanceState {
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly configHash: string;
  /** Wall time in ms. */
  readonly startedAtMs: number;
}

export interface AnnouncedInstance {
  readonly instance: string;
  /** Of the last announcement, in the store's time. */
  readonly announcedAtMs: number;
  /** Undefined if the instance tells nothing about itself, as those of earlier versions. */
  readonly state: InstanceState | undefined;
}

/** Returns the state in a stored text; undefined if it has another form, as those of other programs and versions. */
export function parseInstanceState(text: string): InstanceState | undefined {
  const stored = parseJsonObject(text);
  const texts = ['host', 'version', 'configHash'].every((name) => typeof stored?.[name] === 'string');
  const isState = texts && typeof stored?.pid === 'number' && isTimeMs(stored.startedAtMs);
  return isState ? (stored as unknown as InstanceState) : undefined;
}
