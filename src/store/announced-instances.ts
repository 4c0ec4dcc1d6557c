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

/** Returns whether a stored value has the form of a state: other programs and versions may write others. */
export function isInstanceState(value: unknown): value is InstanceState {
  if (typeof value !== 'object' || value === null) return false;
  const has = (name: string, type: string) => typeof Reflect.get(value, name) === type;
  const texts = ['host', 'version', 'configHash'].every((name) => has(name, 'string'));
  return texts && has('pid', 'number') && isTimeMs(Reflect.get(value, 'startedAtMs'));
}
