function refuse(): never {
  throw new TypeError('the configuration is frozen');
}

/** Freezes plain objects, arrays and Maps recursively; returns the same value. Structured cloning loses that. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  const children = value instanceof Map ? [...value.values()] : Object.values(value);
  // Object.freeze does not protect the entries of a Map.
  if (value instanceof Map) Object.assign(value, { set: refuse, delete: refuse, clear: refuse });
  Object.freeze(value);
  for (const child of children) deepFreeze(child);
  return value;
}
