import type { Config } from './config.ts';

function refuse(): never {
  throw new TypeError('the configuration is frozen');
}

/** Disables a Map's mutating methods, because `Object.freeze` does not protect its entries. */
function freezeMap(map: Map<unknown, unknown>): void {
  Object.assign(map, { set: refuse, delete: refuse, clear: refuse });
}

/** Freezes plain objects, arrays and Maps recursively; returns the same value. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  const children = value instanceof Map ? [...value.values()] : Object.values(value);
  if (value instanceof Map) freezeMap(value);
  Object.freeze(value);
  for (const child of children) deepFreeze(child);
  return value;
}

/** Restores what structured cloning loses of a configuration: it is frozen, and `aliases` has no prototype. */
export function restoreClone(clone: Config): Config {
  return deepFreeze({ ...clone, aliases: Object.assign(Object.create(null), clone.aliases) });
}
