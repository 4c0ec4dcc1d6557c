/** Names as in files and documents (`requests_per_hour`), and as in code (`requestsPerHour`). */

export type CamelCase<Name> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

/** Members that are not set are absent, never undefined. */
export type CamelCased<T> = { [Name in keyof T as CamelCase<Name>]: Exclude<T[Name], undefined> };

export function camelCase(name: string): string {
  return name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Renames the members of one mapping; not those of mappings inside it. */
export function camelCased<T extends object>(mapping: T): CamelCased<T> {
  return Object.fromEntries(Object.entries(mapping).map(([name, value]) => [camelCase(name), value])) as CamelCased<T>;
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
