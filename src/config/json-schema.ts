/** The JSON Schema of the config file: with each setting's `typeInWords`, for lookups by path, and for editors. */
import { z } from 'zod';
import type { Path } from './problems.ts';
import { configSchema } from './schema.ts';

/** What {@link configSchema} says about one setting or section. */
export interface SettingSchema {
  readonly typeInWords?: string;
  readonly isSecret?: boolean;
  readonly description?: string;
  readonly default?: unknown;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly SettingSchema[];
  /** Of a section. */
  readonly properties?: Readonly<Record<string, SettingSchema>>;
  readonly required?: readonly string[];
  /** Of each entry of a map; false for a section. */
  readonly additionalProperties?: SettingSchema | false;
  /** Of each entry of a list. */
  readonly items?: SettingSchema;
}

/** In draft 7, which every YAML editor supports. */
export const SETTINGS = z.toJSONSchema(configSchema, {
  target: 'draft-07',
  io: 'input',
  override({ jsonSchema }) {
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    // A section that null turns off has its keys at once, not in an alternative.
    const { anyOf: [section, off] = [] } = jsonSchema;
    if (section?.properties === undefined || off?.type !== 'null') return;
    delete jsonSchema.anyOf;
    Object.assign(jsonSchema, { ...section, ...jsonSchema, type: ['object', 'null'] });
  },
}) as SettingSchema;

/** Returns the schema for a path in the file; undefined for a path that cannot exist. */
export function settingAt(path: Path): SettingSchema | undefined {
  return path.reduce<SettingSchema | undefined>((schema, step) => {
    if (schema?.properties) return Object.hasOwn(schema.properties, step) ? schema.properties[step] : undefined;
    return schema?.items ?? (schema?.additionalProperties || undefined);
  }, SETTINGS);
}

/** Returns the schema for completion and checks in editors. It has fewer rules than check-config. */
export function editorSchema(): SettingSchema & { readonly title: string } {
  const withoutOwn = (name: string, value: unknown) => (OWN_KEYWORDS.includes(name) ? undefined : value);
  const standard: SettingSchema = JSON.parse(JSON.stringify(SETTINGS, withoutOwn));
  return { title: 'Configuration of Tollgate', ...asWritten(standard) };
}

/** Keywords that are not part of JSON Schema. No setting may have such a name. */
const OWN_KEYWORDS: readonly string[] = ['typeInWords', 'isSecret'] satisfies (keyof SettingSchema)[];
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
