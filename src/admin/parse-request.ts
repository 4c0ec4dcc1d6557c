/**
 * Parses the body and the query of a request, and returns their members in camel case. Neither is parsed before the
 * request is authenticated.
 */
import express, { type Request, type RequestHandler } from 'express';
import type { z } from 'zod';
import { describeIssue, type InputNouns } from '../admin-api/requests.ts';
import { type CamelCased, camelCased } from '../base/camel-case.ts';
import { Refusal } from './refusal.ts';

const MAX_BODY_BYTES = 64 * 1024;
/** Enough for a config file with an override for each of ten thousand customers. */
const MAX_YAML_BYTES = 1024 * 1024;
const YAML = /^(?:application|text)\/(?:x-)?yaml\s*(;|$)/i;

/**
 * Parses a JSON body into `req.body`, which stays undefined without a body. error-handler.ts turns the errors of
 * Express's parser into problem documents.
 */
export function jsonBody(limit = MAX_BODY_BYTES): RequestHandler[] {
  return [requireJson, express.json({ limit, inflate: false, strict: false, type: () => true })];
}

/** Parses a YAML body, which may be larger, into a Buffer `req.body`; undefined without a body. */
export function yamlBody(): RequestHandler[] {
  return [requireYaml, express.raw({ limit: MAX_YAML_BYTES, inflate: false, type: () => true })];
}

const requireYaml: RequestHandler = (req, _res, next) => {
  if (YAML.test(req.headers['content-type'] ?? '')) return next();
  next(new Refusal('unsupported_media_type', 'Send the file with Content-Type: application/yaml.'));
};

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
export function parseBody<Schema extends z.ZodType<object>>(
  schema: Schema,
  body: unknown,
): CamelCased<z.output<Schema>> {
  return parse(schema, body === undefined ? {} : body, { whole: 'the body', member: 'member' });
}

/** Parses the query with a schema of texts. @throws Refusal naming every invalid parameter. */
export function parseQuery<Schema extends z.ZodType<object>>(
  schema: Schema,
  { originalUrl }: Pick<Request, 'originalUrl'>,
): CamelCased<z.output<Schema>> {
  const begin = originalUrl.indexOf('?');
  const parameters = new URLSearchParams(begin === -1 ? '' : originalUrl.slice(begin));
  if (new Set(parameters.keys()).size < parameters.size) {
    throw new Refusal('unprocessable', 'The query has a parameter twice; give each once.');
  }
  return parse(schema, Object.fromEntries(parameters), { whole: 'the query', member: 'parameter' });
}

function parse<Schema extends z.ZodType<object>>(
  schema: Schema,
  input: unknown,
  nouns: InputNouns,
): CamelCased<z.output<Schema>> {
  const result = schema.safeParse(input, { reportInput: true });
  if (result.success) return camelCased(result.data);
  throw new Refusal('unprocessable', result.error.issues.map((issue) => describeIssue(issue, nouns)).join('; '));
}
