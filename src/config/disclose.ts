import { camelCase } from '../base/camel-case.ts';
import { isMapping } from '../base/mapping.ts';
import type { Disclosed } from './config.ts';
import { SETTINGS, type SettingSchema } from './json-schema.ts';

/** Shown in place of a secret that is set. */
export const HIDDEN = '(secret)';

/**
 * Returns the effective values for display, by their names in the file and in the order of the config reference. Every
 * key is present; null means not set. Hides what the schema marks as secret, and removes user information from every
 * URL in any setting.
 */
export function disclose(value: unknown, schema: SettingSchema = SETTINGS): Disclosed {
  const { properties, additionalProperties: entry, items, isSecret = false, typeInWords = '' } = schema;
  if (value instanceof Map) {
    return Object.fromEntries([...value].map(([name, each]) => [name, disclose(each, entry || {})]));
  }
  if (isMapping(value)) {
    const settings = Object.entries(properties ?? {});
    return Object.fromEntries(settings.map(([name, setting]) => [name, disclose(value[camelCase(name)], setting)]));
  }
  if (Array.isArray(value)) return value.map((item) => disclose(item, items ?? {}));
  // An empty secret counts as not set.
  if (value === undefined || value === null || (isSecret && value === '')) return null;
  if (isSecret && !typeInWords.includes('URL')) return HIDDEN;
  if (typeof value === 'string') return withoutUserInfo(value);
  return typeof value === 'number' || typeof value === 'boolean' ? value : HIDDEN;
}

/** Replaces anything that may be a URL's user information, even in the value of a setting that expects none. */
export function withoutUserInfo(text: string, replacement = ''): string {
  const [start, end] = [text.indexOf('//'), text.lastIndexOf('@')];
  return start < 0 || end < start ? text : text.slice(0, start + 2) + replacement + text.slice(end + 1);
}
