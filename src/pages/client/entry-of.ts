/** Returns the entry for a key that comes from data: `constructor` is none unless the object itself has it. */
export function entryOf<Value>(object: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
