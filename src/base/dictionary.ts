/**
 * Returns an empty object without a prototype, for keys that come from data: `__proto__` and `constructor` are then keys
 * like any other. For documents that become JSON; elsewhere, use a Map.
 */
export function dictionary<Value>(): Record<string, Value> {
  return Object.create(null);
}
