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
  /** As it would be written in YAML on one line; `required`, or empty when left out means none. */
  readonly default: string;
  /** One sentence or two. */
  readonly description: string;
  /** `reload` or `restart`: when a changed value holds; empty where the rows below differ. */
  readonly takesEffect: string;
}

/** Every key of the configuration file, sections included, in the order of the schema. */
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

/** Entries have no row of their own where the rows of their keys say it all. */
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

/** A value in YAML's flow style. Only for our own defaults: nothing in them needs an escape. */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return /[{},[\]]/.test(String(value)) ? `"${value}"` : String(value);
  const entries = Object.entries(value).map(([key, entry]) => `${key}: ${flow(entry)}`);
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
}
