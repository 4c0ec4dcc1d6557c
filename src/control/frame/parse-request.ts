/**
 * Parses the body and the query of a request, and returns their members in camel case. Neither is parsed before the
 * request is authenticated.
 */
import type { Request, RequestHandler, Response } from 'express';
import type { z } from 'zod';
import { describeIssue, type InputNouns } from '../../api/admin/requests.ts';
import { type CamelCased, camelCased } from '../../base/camel-case.ts';
import { announcesBody } from '../../http/listener/connections.ts';
import { type HeldBodyFault, readBody } from '../../http/listener/held-body.ts';
import { Refusal } from './refusal.ts';
import { factsOf } from './response-locals.ts';

const MAX_BODY_BYTES = 64 * 1024;
/** Before authentication: enough for the code of a link to the portal. */
const MAX_UNKNOWN_BYTES = 1024;
/** Enough for a config file with an override for each of ten thousand customers. */
const MAX_YAML_BYTES = 1024 * 1024;
const JSON_TYPE = /^application\/json\s*(;|$)/i;
const YAML_TYPE = /^(?:application|text)\/(?:x-)?yaml\s*(;|$)/i;
/** RFC 8259 §8.1 permits no other. */
const FOREIGN_CHARSET = /;\s*charset\s*=\s*"?(?!utf-8\b)/i;

/**
 * Parses a JSON body into `req.body`, which stays undefined without a body. `unknownLimitBytes`: for a request that is not
 * authenticated.
 */
export function jsonBody(unknownLimitBytes = MAX_UNKNOWN_BYTES): RequestHandler {
  return async (req, res, next) => {
    const { 'content-type': type = '' } = req.headers;
    // Before the body is read, so that a browser's form post is never parsed.
    if (announcesBody(req) && !JSON_TYPE.test(type)) {
      throw new Refusal('unsupported_media_type', 'Send the body with Content-Type: application/json.');
    }
    const content = await contentOf(req, res, MAX_BODY_BYTES, unknownLimitBytes);
    if (content?.length) req.body = parseJson(content);
    next();
  };
}

/** Takes a YAML body, which may be larger, as the Buffer `req.body`; undefined without a body. */
export const yamlBody: RequestHandler = async (req, res, next) => {
  if (!YAML_TYPE.test(req.headers['content-type'] ?? '')) {
    throw new Refusal('unsupported_media_type', 'Send the file with Content-Type: application/yaml.');
  }
  req.body = await contentOf(req, res, MAX_YAML_BYTES);
  next();
};

/** @throws Refusal after which the connection is closed, because the rest of the body is not read. */
async function contentOf(req: Request, res: Response, knownLimitBytes: number, unknownLimitBytes = MAX_UNKNOWN_BYTES) {
  const { 'content-encoding': coding = 'identity', 'content-type': type = '' } = req.headers;
  if (announcesBody(req) && (coding.toLowerCase() !== 'identity' || FOREIGN_CHARSET.test(type))) {
    throw new Refusal('unsupported_media_type', 'Send the body as UTF-8, without Content-Encoding.');
  }
  const isKnown = factsOf(res).actor !== undefined;
  const limitBytes = isKnown ? knownLimitBytes : unknownLimitBytes;
  const content = await readBody(req, res, { limitBytes, isKnown });
  if (typeof content !== 'string') return content;
  res.shouldKeepAlive = false;
  throw bodyFaults(limitBytes)[content];
}

const bodyFaults = (limitBytes: number): Readonly<Record<HeldBodyFault, Refusal>> => ({
  too_large: new Refusal('body_too_large', `The body is larger than ${limitBytes} bytes.`),
  framing: new Refusal('malformed_json', 'The body has far more framing than content. Send it in larger chunks.'),
  incomplete: MALFORMED,
});

const MALFORMED = new Refusal('malformed_json', 'The body is not a complete and valid JSON document.');

function parseJson(content: Buffer): unknown {
  try {
    // Removes a byte order mark, as TextDecoder does.
    return JSON.parse(new TextDecoder().decode(content));
  } catch {
    throw MALFORMED;
  }
}

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
