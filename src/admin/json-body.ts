import express, { type RequestHandler } from 'express';
import type { z } from 'zod';
import { describeIssue, type Terms } from './member-faults.ts';
import { Refusal } from './refusal.ts';

export const MOST_BODY_BYTES = 64 * 1024;

/**
 * Parses a JSON body into `req.body`; no body at all leaves it undefined. What Express's parser throws is turned into
 * problems by error-handler.ts.
 */
export function jsonBody(): RequestHandler[] {
  return [requireJson, express.json({ limit: MOST_BODY_BYTES, inflate: false, strict: false, type: () => true })];
}

/** Before the body is read: a form post of a browser must not get as far as being parsed. */
const requireJson: RequestHandler = (req, _res, next) => {
  const { 'content-length': length, 'transfer-encoding': coding, 'content-type': type = '' } = req.headers;
  const hasBody = coding !== undefined || (length !== undefined && Number(length) > 0);
  if (hasBody && !/^application\/json\s*(;|$)/i.test(type)) {
    return next(new Refusal('unsupported_media_type', 'Send the body with Content-Type: application/json.'));
  }
  next();
};

/** The body as the schema has it; a missing body counts as `{}`. @throws Refusal naming every member that is wrong. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  return parseMembers(schema, body === undefined ? {} : body, { whole: 'the body', member: 'member' });
}

/** The input as the schema has it. @throws Refusal naming every member that is wrong. */
export function parseMembers<Schema extends z.ZodType>(schema: Schema, input: unknown, terms: Terms): z.output<Schema> {
  const result = schema.safeParse(input, { reportInput: true });
  if (result.success) return result.data;
  throw new Refusal('unprocessable', result.error.issues.map((issue) => describeIssue(issue, terms)).join('; '));
}
