/** The form of a table of routes: of the admin API, and of the portal's. */
import type { z } from 'zod';
import type { CamelCased } from '../../base/camel-case.ts';
import type { PORTAL_SCOPES } from './allowed-values.ts';
import type { BodyContext } from './requests.ts';

export interface ApiRoute {
  /** In the portal: what a session or token must have. Without: any session or token will do, or none is needed. */
  readonly scope?: (typeof PORTAL_SCOPES)[number];
  /** Without a schema, the query is ignored. */
  readonly query?: z.ZodObject;
  /** A JSON body, or a body of YAML. Without either, a JSON body is ignored. */
  readonly body?: ((context: BodyContext) => z.ZodType<object>) | 'yaml';
  /** Of a reply that is not a refusal: 200 by default; 204 without `reply`. */
  readonly status?: 201;
  /** A JSON document, or a text that the handler writes itself. */
  readonly reply?: z.ZodType | 'text';
}

/** By method and path, which is as in Express. */
export type RouteTable = Readonly<Record<`${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`, ApiRoute>>;

type ParameterName<Path> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParameterName<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

type PathParameters<Each> = { readonly [Name in ParameterName<Each>]: string };
type JsonSchema<Body> = Body extends (context: never) => infer Schema ? Schema : never;

/** What a client sends: the parameters of the path, the query and the body. */
export type SentRequest<Routes, Each extends keyof Routes> = PathParameters<Each> &
  (Routes[Each] extends { query: infer Schema extends z.ZodType } ? { readonly query?: z.input<Schema> } : unknown) &
  (Routes[Each] extends { body: infer Body }
    ? { readonly body: Body extends 'yaml' ? string : z.input<JsonSchema<Body>> }
    : unknown);

/** The same as a handler gets it: checked and converted, with members in camel case. */
export type CheckedRequest<Routes, Each extends keyof Routes> = PathParameters<Each> &
  (Routes[Each] extends { query: infer Schema extends z.ZodType }
    ? { readonly query: CamelCased<z.output<Schema>> }
    : unknown) &
  (Routes[Each] extends { body: infer Body }
    ? { readonly body: Body extends 'yaml' ? Uint8Array : CamelCased<z.output<JsonSchema<Body>>> }
    : unknown);

/** The document of the reply; undefined if it has none. */
export type Reply<Routes, Each extends keyof Routes> = Routes[Each] extends { reply: infer Schema extends z.ZodType }
  ? z.output<Schema>
  : undefined;

/** Returns a row of a table without the type of its own. */
export function routeOf<Table extends RouteTable>(table: Table, endpoint: keyof Table & string): ApiRoute {
  return table[endpoint] as ApiRoute;
}
