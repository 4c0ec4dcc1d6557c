/** The JSON Schema of the config file for editors: config/gateway.schema.json. */
import { SETTINGS, type SettingSchema } from '../src/config/json-schema.ts';

/** Returns the schema for completion and checks in editors. It has fewer rules than check-config. */
export function editorSchema(): SettingSchema & { readonly title: string } {
  const withoutOwn = (name: string, value: unknown) => (OWN_KEYWORDS.includes(name) ? undefined : value);
  const standard: SettingSchema = JSON.parse(JSON.stringify(SETTINGS, withoutOwn));
  return { title: 'Configuration of Tollgate', ...asWritten(standard) };
}

/** Keywords that are not part of JSON Schema. No setting may have such a name. */
const OWN_KEYWORDS: readonly string[] = ['typeInWords', 'isSecret', 'secretMember'] satisfies (keyof SettingSchema)[];
const SUBSTITUTION = { type: 'string', pattern: '\\$\\{[A-Za-z_]' };

/** Relaxes a schema to what the file may contain: `${NAME}` for any scalar, and a number where text is expected. */
function asWritten({ description, default: fallback, ...rules }: SettingSchema): SettingSchema {
  const { type, properties, additionalProperties, items } = rules;
  const about = { ...(description && { description }), ...(fallback !== undefined && { default: fallback }) };
  if (properties || additionalProperties) {
    const entries = Object.entries(properties ?? {}).map(([key, value]) => [key, asWritten(value)]);
    return {
      ...about,
      ...rules,
      ...(properties && { properties: Object.fromEntries(entries) }),
      ...(additionalProperties && { additionalProperties: asWritten(additionalProperties) }),
    };
  }
  if (items) return { ...about, ...rules, items: asWritten(items) };
  const types = type === undefined ? [] : [type].flat();
  const isText = types.includes('string') && rules.enum === undefined;
  if (isText) return { ...about, ...rules, type: [...types, 'number'] };
  return { ...about, anyOf: [...(rules.anyOf ?? [rules]), SUBSTITUTION] };
}
