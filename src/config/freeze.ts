import type { Config } from './config.ts';

function refuse(): never {
  throw new TypeError('the configuration is frozen');
}

/** `Object.freeze` doesn't reach the entries of a Map, so its writing methods are shut off as well. */
function freezeMap(map: Map<unknown, unknown>): void {
  Object.assign(map, { set: refuse, delete: refuse, clear: refuse });
}

/** Freezes plain objects, arrays and Maps all the way down; returns the same value. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  const children = value instanceof Map ? [...value.values()] : Object.values(value);
  if (value instanceof Map) freezeMap(value);
  Object.freeze(value);
  for (const child of children) deepFreeze(child);
  return value;
}

/** Returns a structured clone of a configuration with what cloning drops: it is frozen, `aliases` has no prototype. */
export function restoreClone(clone: Config): Config {
  return deepFreeze({ ...clone, aliases: Object.assign(Object.create(null), clone.aliases) });
}
