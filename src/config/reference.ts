import { z } from 'zod';
import { isPartlyReloadable, takesEffect } from './changes.ts';
import { configSchema } from './schema.ts';
import { kindOf, unwrapped } from './walk.ts';

/** One row of the reference table of the configuration file. All members are plain text. */
export interface ReferenceRow {
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
  return rowsOf(configSchema, '');
}

function rowsOf(schema: z.core.$ZodType, path: string): ReferenceRow[] {
  const container = unwrapped(schema);
  if (container instanceof z.ZodObject) {
    const shape: Readonly<Record<string, z.core.$ZodType>> = container.shape;
    return Object.entries(shape).flatMap(([key, child]) => {
      const childPath = path === '' ? key : `${path}.${key}`;
      return [rowOf(child, childPath), ...rowsOf(child, childPath)];
    });
  }
  if (container instanceof z.ZodRecord) return itemRows(container.valueType, `${path}.<name>`);
  if (container instanceof z.ZodArray) return itemRows(container.element, `${path}[]`);
  return [];
}

/** Map and list entries that are mappings get no row of their own: the rows of their keys describe them. */
function itemRows(item: z.core.$ZodType, path: string): ReferenceRow[] {
  return unwrapped(item) instanceof z.ZodObject ? rowsOf(item, path) : [rowOf(item, path)];
}

function rowOf(schema: z.core.$ZodType, path: string): ReferenceRow {
  const isEntry = path.endsWith('[]') || path.endsWith('>');
  return {
    path,
    type: kindOf(schema)?.type ?? '',
    default: isEntry ? '' : defaultOf(schema),
    description: z.globalRegistry.get(schema)?.description ?? '',
    takesEffect: isPartlyReloadable(path) ? '' : takesEffect(path),
  };
}

function defaultOf(schema: z.core.$ZodType): string {
  if (schema instanceof z.ZodDefault) return flow(schema.def.defaultValue);
  return schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault ? '' : 'required';
}

/** Formats a value in YAML flow style. Only for the schema's defaults, which need no escaping. */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return /[{},[\]]/.test(String(value)) ? `"${value}"` : String(value);
  const entries = Object.entries(value).map(([key, entry]) => `${key}: ${flow(entry)}`);
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
}
