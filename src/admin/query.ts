import type { Request } from 'express';
import type { z } from 'zod';
import { parseMembers } from './json-body.ts';
import { Refusal } from './refusal.ts';

/** The query as the schema has it; every value is text. @throws Refusal naming every parameter that is wrong. */
export function parseQuery<Schema extends z.ZodType>(schema: Schema, req: Request): z.output<Schema> {
  const begin = req.originalUrl.indexOf('?');
  const parameters = new URLSearchParams(begin === -1 ? '' : req.originalUrl.slice(begin));
  if (new Set(parameters.keys()).size < parameters.size) {
    throw new Refusal('unprocessable', 'The query has a parameter twice; give each once.');
  }
  return parseMembers(schema, Object.fromEntries(parameters), { whole: 'the query', member: 'parameter' });
}
