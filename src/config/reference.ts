import { SETTINGS, type SettingSchema } from './json-schema.ts';
import { isPartlyReloadable, takesEffect } from './reloadable-settings.ts';

/** Returns a row for every key of the config file, sections included, in schema order. */
export function configReference() {
  return rowsBelow(SETTINGS, '');
}

function rowsBelow(
  { properties, required = [], items, additionalProperties }: SettingSchema,
  path: string,
): ReturnType<typeof rowOf>[] {
  const rows = Object.entries(properties ?? {}).flatMap(([key, setting]) => {
    const below = path === '' ? key : `${path}.${key}`;
    return [
      rowOf(setting, below, required.includes(key) ? 'required' : defaultOf(setting)),
      ...rowsBelow(setting, below),
    ];
  });
  const entry = items ?? additionalProperties;
  if (!entry) return rows;
  const entryPath = items ? `${path}[]` : `${path}.<name>`;
  // Entries that are mappings get no row of their own: the rows of their keys describe them.
  return entry.properties ? rowsBelow(entry, entryPath) : [rowOf(entry, entryPath, '')];
}

/**
 * `path`: like `routes[].path` or `plans.<name>.requests_per_hour`. `fallback`: one line of YAML, or `required`.
 * `takesEffect` is empty if the keys below differ in that.
 */
function rowOf({ typeInWords = '', description = '' }: SettingSchema, path: string, fallback: string) {
  const effect = isPartlyReloadable(path) ? '' : takesEffect(path);
  return { path, type: typeInWords, default: fallback, description, takesEffect: effect };
}

/** The default of a section is that of its keys. */
function defaultOf({ properties, default: fallback }: SettingSchema): string {
  return properties || fallback === undefined ? '' : flow(fallback);
}

/** Formats a value in YAML flow style. Only for the schema's defaults, which need no escaping. */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return /[{},[\]]/.test(String(value)) ? `"${value}"` : String(value);
  const entries = Object.entries(value).map(([key, entry]) => `${key}: ${flow(entry)}`);
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
}
