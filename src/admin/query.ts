import type { Request } from 'express';
import type { z } from 'zod';
import { parseMembers } from './json-body.ts';
import { Refusal } from './refusal.ts';

/** Parses the query with a schema, from values that are all text. @throws Refusal naming every invalid parameter. */
export function parseQuery<Schema extends z.ZodType>(schema: Schema, req: Request): z.output<Schema> {
  const begin = req.originalUrl.indexOf('?');
  const parameters = new URLSearchParams(begin === -1 ? '' : req.originalUrl.slice(begin));
  if (new Set(parameters.keys()).size < parameters.size) {
    throw new Refusal('unprocessable', 'The query has a parameter twice; give each once.');
  }
  return parseMembers(schema, Object.fromEntries(parameters), { whole: 'the query', member: 'parameter' });
}
