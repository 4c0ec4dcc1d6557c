/**
 * Schemas of the types of settings. Each has one rule in words, with which the problem's text begins however a value breaks it, and
 * metadata for json-schema.ts: `typeInWords`, `isSecret` if the value is never shown, and `secretMember`.
 */
import { z } from 'zod';
import { camelCased } from '../base/camel-case.ts';
import { isAddressOrBlock } from '../formats/address-block.ts';
import { isKeyHeader } from '../formats/header-names.ts';
import { isCustomerId } from '../formats/ids.ts';
import { isScope } from '../formats/key-restrictions.ts';
import {
  isDocumentationUrl,
  isListenHost,
  isPrefix,
  isRoutePath,
  parseOrigin,
  parseUpstreamUrl,
} from '../formats/path-and-origin.ts';
import { ROUTE_METHODS } from '../formats/route-methods.ts';
import { parseTimestamp } from '../formats/timestamp.ts';
import { isHttpUrl, isTrustworthyUrl } from '../formats/url.ts';
import { isWebhookUrl } from '../formats/webhook-url.ts';

/** The longest delay of a Node.js timer. */
const MAX_MS = 2_147_483_647;

function integer(type: string, rule: string, min: number, max: number = Number.MAX_SAFE_INTEGER) {
  return z.int(rule).min(min, rule).max(max, rule).meta({ typeInWords: type });
}

/** An integer with a unit, such as `milliseconds`. */
function amount(unit: string, min: number, max: number) {
  return integer(unit, `must be an integer of ${unit} from ${min} to ${max}`, min, max);
}

function text(type: string, rule: string, accepts: RegExp | ((value: string) => boolean), isSecret = false) {
  const isAccepted = accepts instanceof RegExp ? (value: string) => accepts.test(value) : accepts;
  return z.string(rule).refine(isAccepted, rule).meta({ typeInWords: type, isSecret });
}

export const port = integer('port', 'must be an integer from 0 to 65535', 0, 65_535);

export const durationMs = amount('milliseconds', 1, MAX_MS);

export const durationOrZeroMs = amount('milliseconds', 0, MAX_MS);

export const seconds = amount('seconds', 1, Math.floor(MAX_MS / 1000));

export const count = integer('integer', 'must be an integer of at least 1', 1);

/** What a request takes from a quota. */
export const units = amount('units', 0, 1000);

/** More than any machine needs; catches a number of requests that is entered here by mistake. */
const MAX_WORKERS = 1024;
const WORKERS_RULE = `must be an integer from 1 to ${MAX_WORKERS}, or "auto"`;

export const workers = z
  .union([integer('integer', WORKERS_RULE, 1, MAX_WORKERS), z.literal('auto')], WORKERS_RULE)
  .meta({ typeInWords: 'integer | auto' });

/** 100 percent has a notice of its own. */
export const percent = amount('percent', 1, 99);

export const days = amount('days', 1, 365);

/** Of records of requests. All of them are read for one page of a filtered list. */
export const recordHours = amount('hours', 1, 720);
export const recordEntries = amount('entries', 1, 100_000);

export const bytes = amount('bytes', 1, 1_048_576);

/** Bodies are streamed, so that no memory limits their length. */
export const bodyBytes = integer('bytes', 'must be an integer of bytes of at least 0', 0);

export const flag = z.boolean('must be true or false').meta({ typeInWords: 'boolean' });

export function oneOf<const T extends readonly [string, ...string[]]>(words: T) {
  return z.enum(words, `must be one of ${words.join(', ')}`).meta({ typeInWords: words.join(' | ') });
}

export const listenHost = text('host', 'must be an IP address (IPv6 without brackets) or a host name', isListenHost);

export const addressOrBlock = text(
  'address or CIDR',
  'must be an IP address or a CIDR block such as 10.0.0.0/8',
  isAddressOrBlock,
);

export const scope = text('scope', 'must be 1 to 128 visible ASCII characters without " and \\', isScope);

/** Empty counts as not set, so `${NAME:-}` can switch a setting off. Checked further after `…_file` is read. */
export const secret = (type: string) => text(type, 'must be text; put it in quotes', () => true, true);

export const fileName = text(
  'file',
  'must be the name of a file',
  (value) => value === '' || (value.trim() !== '' && !value.includes('\0')),
);

/** A file with a secret. `secretMember`: the member of the configuration that holds what was read. */
export const secretFile = (secretMember: string) => fileName.meta({ typeInWords: 'file', secretMember });

export const keyPrefix = text('text', 'must be 1 to 128 characters of A-Z a-z 0-9 . _ : -', /^[A-Za-z0-9._:-]{1,128}$/);

export const upstreamUrl = text(
  'URL',
  'must be http(s)://host[:port], with a base path of segments of A-Z a-z 0-9 . _ ~ - if need be, without query and credentials',
  (value) => parseUpstreamUrl(value) !== undefined,
  true,
);

/** The response is trusted, so it must be protected against changes on the network path. */
export const trustworthyUrl = text(
  'URL',
  'must be https://host[:port]/path, or http:// with a loopback host such as 127.0.0.1, without credentials and fragment',
  (value) => isTrustworthyUrl(value),
);

/** What else it must be without `allow_private` is checked together with that. */
export const webhookUrl = text(
  'URL',
  'must be http(s)://host[:port]/path of at most 2048 characters, without @ or \\ before the path and without a fragment',
  (value) => isWebhookUrl(value, { allowPrivate: true }),
);

/** Shown to operators. */
export const collectorUrl = text(
  'URL',
  'must be http(s)://host[:port]/path, without credentials and fragment; put credentials into headers_file',
  (value) => isHttpUrl(value),
);

const RATIO_RULE = 'must be a number from 0 to 1';

export const ratio = z.number(RATIO_RULE).min(0, RATIO_RULE).max(1, RATIO_RULE).meta({ typeInWords: 'ratio' });

/** Shown to API users, who open it. */
export const documentationUrl = text(
  'URL',
  'must be http:// or https://, at most 1024 characters, without credentials; {code} stands for the code of the problem',
  isDocumentationUrl,
);

/** What browsers open, without a path: the cookies of the portal belong to a whole origin. */
export const origin = text(
  'URL',
  'must be https://host[:port], without path and credentials',
  (value) => parseOrigin(value) !== undefined,
);

export const webPage = text(
  'URL',
  'must be http:// or https://, at most 1024 characters, without credentials',
  (value) => isDocumentationUrl(value) && !value.includes('{'),
);

/** Where users are sent back to, so that nobody on the network path can replace it. */
export const returnUrl = text(
  'URL',
  'must be https://, or http:// with a loopback host, at most 1024 characters, without credentials',
  (value) => value.length <= 1024 && isTrustworthyUrl(value, { allowFragment: true }),
);

/** Shown in lines for a shell. */
export const apiUrl = text(
  'URL',
  'must be http(s)://host[:port], with a base path of segments of A-Z a-z 0-9 . _ ~ - if need be, without query and credentials',
  (value) => value.length <= 1024 && /^http/i.test(value) && parseUpstreamUrl(value) !== undefined,
);

/** Sent in a Link header as it is, so it has only the characters of RFC 3986. */
export const successor = text(
  'URL',
  'must be an absolute http:// or https:// URL of at most 1024 characters of RFC 3986, without credentials',
  (value) => /^[\w\-.~:/?#[\]@!$&'()*+,;=%]{1,1024}$/.test(value) && isHttpUrl(value, { allowFragment: true }),
);

export const time = text(
  'time',
  'must be an ISO 8601 time with a zone, such as 2030-01-31T00:00:00Z',
  (value) => parseTimestamp(value) !== undefined,
);

/** Shown to people. */
export const title = text('text', 'must be 1 to 80 characters without control characters', /^[^\p{Cc}\p{Cs}]{1,80}$/u);

export const description = text(
  'text',
  'must be 1 to 200 characters without control characters',
  /^[^\p{Cc}\p{Cs}]{1,200}$/u,
);

export const color = text('color', 'must be "#" and six hex digits, in quotes', /^#[0-9a-f]{6}$/i);

/** The part of RFC 7519 §2's StringOrURI that is used in practice. */
export const stringOrUri = text(
  'text',
  'must be 1 to 512 printable ASCII characters without spaces',
  /^[\x21-\x7e]{1,512}$/,
);

/** Other headers have a meaning of their own, for HTTP, browsers or the gateway. */
export const keyHeader = text(
  'header',
  'must be the name of a header without another meaning: a letter, then at most 63 letters, digits, _ and -; no header that HTTP defines, that browsers add, or that the gateway reads, drops or sends',
  isKeyHeader,
);

/** Shorter assertions could expire during a slow request; longer ones could outlive the API key they represent. */
export const assertionSeconds = amount('seconds', 10, 3600);

/** As other routers write a parameter and the rest of a path. The hint is fixed text: no problem repeats a value. */
const FOREIGN_ROUTE_PATH = /\/:\w|\/\*/;
const ROUTE_PATH_RULE =
  'must be "/", or begin with "/" and have segments of A-Z a-z 0-9 . _ ~ - or one {name}, the last also {name...}, each name once, no "." or "..", and no "/" at the end';

export const routePath = z
  .string(ROUTE_PATH_RULE)
  .refine(isRoutePath, {
    error: ({ input }) =>
      FOREIGN_ROUTE_PATH.test(String(input))
        ? `${ROUTE_PATH_RULE}; write {id} instead of :id, and {rest...} instead of *`
        : ROUTE_PATH_RULE,
  })
  .meta({ typeInWords: 'path' });

export const method = z
  .enum(ROUTE_METHODS, `must be a method that Node.js can parse, in capitals, one of ${ROUTE_METHODS.join(', ')}`)
  .meta({ typeInWords: 'method' });

/** Origin-form (RFC 9112 §3.2.1), written by the operator. */
export const requestPath = text(
  'path',
  'must begin with "/" and have 1 to 1024 printable ASCII characters without spaces and "#"',
  /^\/[\x21\x22\x24-\x7e]{0,1023}$/,
);

export const prefix = text(
  'path prefix',
  'must begin with "/" and have segments of A-Z a-z 0-9 . _ ~ - only, no "." or "..", and no "/" at the end',
  isPrefix,
);

const USAGE_PATH_RULE =
  'must be null, or a path that begins with "/" and has segments of A-Z a-z 0-9 . _ ~ - only, without "/" at the end';

export const usagePath = z
  .string(USAGE_PATH_RULE)
  .refine(isPrefix, USAGE_PATH_RULE)
  .nullable()
  .meta({ typeInWords: 'path | null' });

/** Metrics and totals reserve `none`, `unknown` and `unchecked` for requests without a configured plan. */
export const planName = text(
  'plan name',
  'must be 1 to 64 characters of A-Z a-z 0-9 . _ -, begin with a letter or digit, and not be none, unknown or unchecked',
  /^(?!(?:none|unknown|unchecked)$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
);

/** `default` is the backend of the section `upstream`. */
export const backendName = text(
  'name',
  'must be 1 to 32 characters of a-z 0-9 _ -, and begin with a letter or digit',
  /^[a-z0-9][a-z0-9_-]{0,31}$/,
);

export const upstreamsName = text(
  'name',
  'must be 1 to 32 characters of a-z 0-9 _ -, begin with a letter or digit, and not be default',
  /^(?!default$)[a-z0-9][a-z0-9_-]{0,31}$/,
);

export const customerId = text(
  'customer id',
  'must be 1 to 128 characters of A-Z a-z 0-9 . _ : @ -, and begin with a letter or digit',
  isCustomerId,
);

/** Written unescaped into a quoted-string of WWW-Authenticate (RFC 9110 §5.6.4). */
export const realm = text(
  'text',
  'must be 1 to 128 printable ASCII characters without quotes and backslashes',
  /^[\x20-\x21\x23-\x5b\x5d-\x7e]{1,128}$/,
);

export const planLimit = z
  .union([count, z.literal('custom')], 'must be an integer of at least 1 or "custom"')
  .meta({ typeInWords: 'integer | custom' });

/** A section of the file. Its settings are renamed to camel case, so that each is written once, in the schema. */
export function mapping<T extends z.ZodRawShape>(shape: T) {
  return z
    .strictObject(shape, 'must be a mapping with the keys of this section')
    .transform(camelCased)
    .meta({ typeInWords: 'mapping' });
}

/** A mapping whose names the operator chooses. */
export function mapOf<K extends z.ZodString, V extends z.ZodType>(key: K, value: V) {
  return z
    .record(key, value, 'must be a mapping')
    .transform((entries) => new Map(Object.entries(entries)))
    .meta({ typeInWords: 'mapping' });
}

export function listOf<T extends z.ZodType>(item: T, rule = 'must be a list') {
  return z.array(item, rule).meta({ typeInWords: 'list' });
}
