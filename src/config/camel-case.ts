/** Names of settings (`requests_per_hour`) as names of members (`requestsPerHour`). */
type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

/** Members that are not set are absent, never undefined. */
type CamelCased<T> = { [Name in keyof T as CamelCase<Name & string>]: Exclude<T[Name], undefined> };

export function camelCase(name: string): string {
  return name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Renames the members of one mapping; not those of mappings inside it. */
export function camelCased<T extends object>(mapping: T): CamelCased<T> {
  return Object.fromEntries(Object.entries(mapping).map(([name, value]) => [camelCase(name), value])) as CamelCased<T>;
}
