/**
 * The JSON Schema of the config file, with each setting's `typeInWords`: for lookups by path, and for
 * scripts/editor-schema.ts.
 */
import { z } from 'zod';
import type { Path } from './problems.ts';
import { configSchema } from './schema.ts';

/** What {@link configSchema} says about one setting or section. */
export interface SettingSchema {
  readonly typeInWords?: string;
  readonly isSecret?: boolean;
  /** Of a file with a secret: the member of the configuration that holds it. */
  readonly secretMember?: string;
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

/** The members of the configuration that hold secrets, at any depth. */
export const SECRET_MEMBERS = new Set<unknown>();

/** In draft 7, which every YAML editor supports. */
export const SETTINGS = z.toJSONSchema(configSchema, {
  target: 'draft-07',
  io: 'input',
  override({ jsonSchema }) {
    if (jsonSchema.secretMember !== undefined) SECRET_MEMBERS.add(jsonSchema.secretMember);
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
