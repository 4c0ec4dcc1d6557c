import { z } from 'zod';
import type { Disclosed } from './config.ts';
import { isMapping } from './document.ts';
import { configSchema, type FileValues } from './schema.ts';
import { kindOf, unwrapped } from './walk.ts';

/** Shown in place of a secret that is set. */
export const HIDDEN = '(secret)';

/**
 * Returns the effective values for display, by their names in the file and in the order of the config reference. Every
 * key is present; null means not set. Hides what the schema marks as secret, and removes user information from every
 * URL in any setting.
 */
export function disclose(values: FileValues): Disclosed {
  return reveal(values, configSchema);
}

/** Replaces anything that may be a URL's user information, even in the value of a setting that expects none. */
export function withoutUserInfo(text: string, replacement = ''): string {
  const [start, end] = [text.indexOf('//'), text.lastIndexOf('@')];
  return start < 0 || end < start ? text : text.slice(0, start + 2) + replacement + text.slice(end + 1);
}

function reveal(value: unknown, schema: z.core.$ZodType): Disclosed {
  const container = unwrapped(schema);
  if (isMapping(value) && container instanceof z.ZodObject) {
    const shape: Readonly<Record<string, z.core.$ZodType>> = container.shape;
    return Object.fromEntries(Object.entries(shape).map(([key, child]) => [key, reveal(value[key], child)]));
  }
  if (isMapping(value) && container instanceof z.ZodRecord) {
    return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, reveal(entry, container.valueType)]));
  }
  if (Array.isArray(value) && container instanceof z.ZodArray) {
    return value.map((item) => reveal(item, container.element));
  }
  return scalar(value, schema);
}

function scalar(value: unknown, schema: z.core.$ZodType): Disclosed {
  const { secret = false, type = '' } = kindOf(schema) ?? {};
  // An empty secret counts as not set.
  if (value === undefined || value === null || (secret && value === '')) return null;
  if (secret && !type.includes('URL')) return HIDDEN;
  if (typeof value === 'string') return withoutUserInfo(value);
  return typeof value === 'number' || typeof value === 'boolean' ? value : HIDDEN;
}
