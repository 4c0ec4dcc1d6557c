import { z } from 'zod';
import { type Kind, kinds } from './leaf.ts';
import type { Path } from './problems.ts';

type Schema = z.core.$ZodType;

/** Returns the schema inside `optional`, `default` and `prefault` wrappers. */
export function unwrapped(schema: Schema): Schema {
  let inner = schema;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault) {
    inner = inner.def.innerType;
  }
  return inner;
}

export function kindOf(schema: Schema): Kind | undefined {
  return kinds.get(unwrapped(schema));
}

/** Returns the schema for a path in the file; undefined for a path that cannot exist. */
export function schemaAt(root: Schema, path: Path): Schema | undefined {
  let schema: Schema | undefined = root;
  for (const step of path) {
    const container: Schema = unwrapped(schema);
    if (container instanceof z.ZodObject) {
      const shape: Readonly<Record<string, Schema>> = container.shape;
      schema = Object.hasOwn(shape, step) ? shape[step] : undefined;
    } else if (container instanceof z.ZodRecord) schema = container.valueType;
    else if (container instanceof z.ZodArray) schema = container.element;
    else return undefined;
    if (!schema) return undefined;
  }
  return schema;
}

/** Returns the keys that a mapping may have; undefined if any key is allowed. */
export function knownKeys(schema: Schema): readonly string[] | undefined {
  const container = unwrapped(schema);
  return container instanceof z.ZodObject ? Object.keys(container.shape) : undefined;
}
