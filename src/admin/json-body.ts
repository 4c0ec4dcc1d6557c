import express, { type RequestHandler } from 'express';
import type { z } from 'zod';
import { describeIssue, type InputNouns } from '../admin-api/requests.ts';
import { Refusal } from './refusal.ts';

export const MOST_BODY_BYTES = 64 * 1024;

/**
 * Parses a JSON body into `req.body`, which stays undefined without a body. error-handler.ts turns the errors of
 * Express's parser into problem documents.
 */
export function jsonBody(): RequestHandler[] {
  return [requireJson, express.json({ limit: MOST_BODY_BYTES, inflate: false, strict: false, type: () => true })];
}

/** Checks the content type before the body is read, so that a browser's form post is never parsed. */
const requireJson: RequestHandler = (req, _res, next) => {
  const { 'content-length': length, 'transfer-encoding': coding, 'content-type': type = '' } = req.headers;
  const hasBody = coding !== undefined || (length !== undefined && Number(length) > 0);
  if (hasBody && !/^application\/json\s*(;|$)/i.test(type)) {
    return next(new Refusal('unsupported_media_type', 'Send the body with Content-Type: application/json.'));
  }
  next();
};

/** Parses the body with a schema; a missing body counts as `{}`. @throws Refusal naming every invalid member. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  return parseMembers(schema, body === undefined ? {} : body, { whole: 'the body', member: 'member' });
}

/** Parses the input with a schema. @throws Refusal naming every invalid member. */
export function parseMembers<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  nouns: InputNouns,
): z.output<Schema> {
  const result = schema.safeParse(input, { reportInput: true });
  if (result.success) return result.data;
  throw new Refusal('unprocessable', result.error.issues.map((issue) => describeIssue(issue, nouns)).join('; '));
}
