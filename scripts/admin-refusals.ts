/** The texts of the refusals in docs/openapi/admin.yaml, with the codes of each. */
import type { Refusal } from './openapi-sections.ts';

export const REFUSALS = {
  MalformedJson: { codes: ['malformed_json'], description: 'The body is not valid JSON in UTF-8.' },
  Unauthorized: {
    codes: ['unauthorized'],
    description: 'No bearer token, or it is neither the admin token nor a valid JWT of the issuer.',
  },
  Forbidden: { codes: ['forbidden'], description: 'The JWT is valid but lacks the required scope.' },
  NotFound: { codes: ['not_found'], description: 'The customer, key or path does not exist.' },
  MethodNotAllowed: {
    codes: ['method_not_allowed'],
    description: 'The path does not support this method. Applies to every path of this file.',
  },
  MisdirectedRequest: {
    codes: ['misdirected_request'],
    description: '`Host` is not a name of this listener. Applies to every path of this file.',
  },
  Conflict: {
    codes: ['conflict'],
    description: 'The record already exists, or its state rules out the change; `detail` says which.',
  },
  KeyConflict: {
    codes: ['conflict'],
    description: 'The key already exists; `key_owner` shows whose key it is.',
    required: ['key_owner'],
  },
  BodyTooLarge: {
    codes: ['body_too_large'],
    description: 'The body is larger than 64 KiB, or the config file larger than 1 MiB.',
  },
  UnsupportedMediaType: {
    codes: ['unsupported_media_type'],
    description: 'The body is not declared as JSON (a config file: as YAML), or it is compressed or not in UTF-8.',
  },
  Unprocessable: {
    codes: ['unprocessable'],
    description:
      'A member or parameter is missing, unknown or of the wrong type, the customer would have no limit, or the config file has errors. `detail` lists all problems, without secrets.',
  },
  TooManyFailures: {
    codes: ['too_many_failures'],
    description:
      'The credentials are invalid, and so were more than 30 others from this address within a minute. Valid credentials are accepted all the same.',
  },
  InternalError: { codes: ['internal_error'], description: 'A bug in the gateway. The log has the `request_id`.' },
  IssuerUnavailable: {
    codes: ['issuer_unavailable'],
    description: "The keys of the JWT's issuer cannot be loaded, so the JWT cannot be checked.",
  },
  Unavailable: {
    codes: ['store_unavailable', 'issuer_unavailable', 'overloaded'],
    description:
      "The store does not reply, and a change may or may not have been made; or the keys of the JWT's issuer cannot be loaded; or another preview is in progress.",
  },
} as const satisfies Readonly<Record<string, Refusal>>;

export type RefusalName = keyof typeof REFUSALS;
