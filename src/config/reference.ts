import { SETTINGS, type SettingSchema } from './json-schema.ts';
import { isPartlyReloadable, takesEffect } from './reloadable-settings.ts';

/** One row of the reference table of the configuration file. All members are plain text. */
interface ReferenceRow {
  /** `listen.port`, `routes[].path`, `plans.<name>.requests_per_hour`. */
  readonly path: string;
  /** In words, with `|` between alternatives. */
  readonly type: string;
  /** The default as one line of YAML, or `required`; empty for optional keys and sections, and for entries. */
  readonly default: string;
  /** One sentence or two. */
  readonly description: string;
  /** When a change takes effect: `reload` or `restart`; empty if the keys below differ in that. */
  readonly takesEffect: string;
}

/** Returns a row for every key of the config file, sections included, in schema order. */
export function configReference(): ReferenceRow[] {
  return rowsBelow(SETTINGS, '');
}

function rowsBelow(
  { properties, required = [], items, additionalProperties }: SettingSchema,
  path: string,
): ReferenceRow[] {
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

function rowOf({ typeInWords = '', description = '' }: SettingSchema, path: string, fallback: string): ReferenceRow {
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
