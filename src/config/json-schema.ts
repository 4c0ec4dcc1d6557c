/** The JSON Schema of the config file, for completion and checks in editors. It has fewer rules than check-config. */
import { z } from 'zod';
import { configSchema } from './schema.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

const SUBSTITUTION: JsonSchema = { type: 'string', pattern: '\\$\\{[A-Za-z_]' };

/** Returns the schema in draft 7, which every YAML editor supports. */
export function configJsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(configSchema, {
    target: 'draft-07',
    io: 'input',
    override({ jsonSchema }) {
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  return { title: 'Configuration of Tollgate', ...asWritten(schema) };
}

/** Relaxes a schema to what the file may contain: `${NAME}` for any scalar, and a number where text is expected. */
function asWritten(schema: JsonSchema): JsonSchema {
  const { description, default: fallback, ...rules } = schema;
  const { type, properties, additionalProperties, items } = rules;
  const about = { ...(description && { description }), ...(fallback !== undefined && { default: fallback }) };
  if (type === 'object') {
    const entries = Object.entries(properties ?? {});
    return {
      ...about,
      ...rules,
      ...(properties && { properties: Object.fromEntries(entries.map(([key, value]) => [key, nested(value)])) }),
      ...(additionalProperties !== undefined && { additionalProperties: nested(additionalProperties) }),
    };
  }
  if (type === 'array' && items && !Array.isArray(items)) return { ...about, ...rules, items: nested(items) };
  const types = type === undefined ? [] : [type].flat();
  const isText = types.includes('string') && rules.enum === undefined;
  if (isText) return { ...about, ...rules, type: [...types, 'number'] };
  return { ...about, anyOf: [...(rules.anyOf ?? [rules]), SUBSTITUTION] };
}

function nested(schema: JsonSchema | boolean): JsonSchema | boolean {
  return typeof schema === 'boolean' ? schema : asWritten(schema);
}
