import { SETTINGS, type SettingSchema } from '../src/config/json-schema.ts';
import { takesEffect } from '../src/config/reloadable-settings.ts';

/**
 * `path`: like `routes[].path` or `plans.<name>.requests_per_hour`. `default`: one line of YAML, or `required`.
 * `takesEffect` is empty if the keys below differ in that.
 */
interface Row {
  readonly path: string;
  readonly type: string;
  readonly default: string;
  readonly description: string;
  readonly takesEffect: string;
}

/** Returns a row for every key of the config file, sections included, in schema order. */
export function configReference(): Row[] {
  return rowsBelow(SETTINGS, '');
}

function rowsBelow({ properties, required = [], items, additionalProperties }: SettingSchema, path: string): Row[] {
  const rows = Object.entries(properties ?? {}).flatMap(([key, setting]) => {
    const below = path === '' ? key : `${path}.${key}`;
    const inner = rowsBelow(setting, below);
    return [rowOf(setting, below, required.includes(key) ? 'required' : defaultOf(setting), inner), ...inner];
  });
  const entry = items ?? additionalProperties;
  if (!entry) return rows;
  // Said once: the rows of `upstream` describe the keys of each entry.
  if (path === 'upstreams') return [rowOf(entry, 'upstreams.<name>', '', [])];
  const entryPath = items ? `${path}[]` : `${path}.<name>`;
  // Entries that are mappings get no row of their own: the rows of their keys describe them.
  return entry.properties ? rowsBelow(entry, entryPath) : [rowOf(entry, entryPath, '', [])];
}

function rowOf(
  { typeInWords = '', description = '' }: SettingSchema,
  path: string,
  fallback: string,
  inner: readonly Row[],
): Row {
  const whole = takesEffect(path);
  const isPartlyReloadable = whole === 'restart' && inner.some((row) => row.takesEffect === 'reload');
  return { path, type: typeInWords, default: fallback, description, takesEffect: isPartlyReloadable ? '' : whole };
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
