/**
 * Makes the documents of the admin API. Handlers return values with the members of a document in camel case; its schema
 * says which of them are shown, so no other member of a record can get into a response.
 */
import { z } from 'zod';
import { RECORD_TIME } from '../../api/admin/responses.ts';
import { type CamelCase, camelCase } from '../../base/camel-case.ts';
import { parseTimestamp } from '../../formats/timestamp.ts';

/** The value that becomes a document. A member that may be null may also be absent. Mappings by name stay as they are. */
export type SourceOf<Document> = Document extends readonly (infer Item)[]
  ? readonly SourceOf<Item>[]
  : Document extends object
    ? string extends keyof Document
      ? Document
      : SourceMembers<Document>
    : Document;

type SourceMembers<Document> = {
  readonly [Name in keyof Document as null extends Document[Name] ? never : CamelCase<Name>]: SourceOf<Document[Name]>;
} & {
  readonly [Name in keyof Document as null extends Document[Name] ? CamelCase<Name> : never]?:
    | SourceOf<Document[Name]>
    | undefined;
};

/**
 * Returns the function that makes documents of a schema. Members are in the order of the schema. Unset members become
 * null if the schema allows it.
 */
export function documentsOf<Schema extends z.ZodType>(schema: Schema) {
  return converter(schema) as (source: SourceOf<z.output<Schema>>) => z.output<Schema>;
}

function converter(schema: z.core.$ZodType): (value: unknown) => unknown {
  if (schema === RECORD_TIME) return (value) => inUtc(value as string | undefined);
  if (schema instanceof z.ZodNullable) {
    const convert = converter(schema.unwrap());
    return (value) => (value == null ? null : convert(value));
  }
  if (schema instanceof z.ZodArray) {
    const convert = converter(schema.element);
    return (value) => (value as unknown[]).map(convert);
  }
  if (!(schema instanceof z.ZodObject) || schema.def.catchall !== undefined) return (value) => value;
  const members = Object.entries<z.core.$ZodType>(schema.shape).map(([name, member]) => {
    return [name, camelCase(name), converter(member)] as const;
  });
  return (value) => {
    const document: Record<string, unknown> = {};
    for (const [name, source, convert] of members) document[name] = convert(Reflect.get(value as object, source));
    return document;
  };
}

/** Converts a time to UTC: other programs may write offsets. Returns an invalid time as stored, to be corrected. */
function inUtc(time: string | undefined): string | null {
  if (time === undefined) return null;
  const timeMs = parseTimestamp(time);
  return timeMs === undefined ? time : isoTime(timeMs);
}

/** Returns a wall time in ms as ISO 8601 in UTC. */
export function isoTime<Ms extends number | null | undefined>(ms: Ms): string | (Ms & (null | undefined)) {
  return (ms == null ? ms : new Date(ms).toISOString()) as string | (Ms & (null | undefined));
}
