/**
 * Makes the generated sections of an OpenAPI file, as YAML: paths, query parameters, refusals and schemas. They come from
 * a table of routes and the documents that its listener shares with its clients.
 */
import { Document, isCollection, visit } from 'yaml';
import { z } from 'zod';
import { REQUESTS_PER_HOUR } from '../src/api/admin/requests.ts';
import { PROBLEM } from '../src/api/admin/responses.ts';
import { type ApiRoute, type RouteTable, routeOf } from '../src/api/admin/route-table.ts';
import { PROBLEMS, type ProblemCode } from '../src/http/problems/table.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** What an OpenAPI file is made of, besides what is written by hand in it. */
export interface ApiDescription<Refused extends string> {
  readonly routes: RouteTable;
  /** The components, by name. */
  readonly schemas: (bodyOf: (endpoint: string) => z.ZodType) => Readonly<Record<string, z.ZodType>>;
  /** Query parameters that several operations have, or that have a name of their own. Others stand in their operations. */
  readonly parameters: Readonly<Record<string, z.ZodType>>;
  /** Parameters of paths, by the segment before them. Their components are written by hand. */
  readonly pathParameters: Readonly<Record<string, string>>;
  readonly operations: Readonly<Record<string, Operation<Refused>>>;
  readonly refusals: Readonly<Record<Refused, Refusal>>;
  /** The refusals of an operation that follow from its row in the table. */
  refusalsOf(endpoint: string, route: ApiRoute): readonly Refused[];
  /** Of the operations whose names are not `head` and the rest of the name of GET. */
  readonly headNames?: Readonly<Record<string, string>>;
}

export interface Operation<Refused extends string> {
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** Describes the reply that is not a refusal. */
  readonly success: string;
  /** Of a reply that is text, or can be. */
  readonly mediaTypes?: readonly string[];
  readonly headers?: readonly ('Location' | 'NextPage' | 'SetCookie')[];
  /** Names of refusals, in addition to those that follow from method, path, query and body. */
  readonly refusals?: readonly Refused[];
}

export interface Refusal {
  /** All of the same status. */
  readonly codes: readonly [ProblemCode, ...ProblemCode[]];
  readonly description: string;
  /** Additional rules for the problem document. */
  readonly required?: readonly string[];
}

/** Headers of refusals, by status. */
const HEADERS: Readonly<Record<number, object>> = {
  401: { 'WWW-Authenticate': componentOf('headers', 'Challenge') },
  403: { 'WWW-Authenticate': componentOf('headers', 'Challenge') },
  405: { Allow: componentOf('headers', 'Allow') },
  429: { 'Retry-After': componentOf('headers', 'RetryAfter') },
  503: { 'Retry-After': componentOf('headers', 'RetryAfter') },
};
const NO_STORE = { 'Cache-Control': componentOf('headers', 'NoStore') };

/** Mappings and lists up to this length of JSON are written on one line. */
const MAX_FLOW_LENGTH = 96;
const EVERY_PARAMETER = '(query parameters)';

/** Returns the sections by name, indented for their places in the file. */
export function openApiSections<Refused extends string>(
  api: ApiDescription<Refused>,
): Readonly<Record<'paths' | 'parameters' | 'responses' | 'schemas', string>> {
  const { routes, parameters: PARAMETERS, refusals: REFUSALS } = api;
  const endpoints = Object.keys(routes) as (keyof RouteTable)[];
  const bodies = new Map(
    endpoints.flatMap((endpoint): [string, z.ZodType][] => {
      const { body } = routeOf(routes, endpoint);
      return typeof body === 'function' ? [[endpoint, body({ plans: new Set(), nowMs: Date.now })]] : [];
    }),
  );
  const SCHEMAS = api.schemas((endpoint) => {
    const body = bodies.get(endpoint);
    if (body === undefined) throw new Error(`${endpoint} has no JSON body`);
    return body;
  });
  const { [EVERY_PARAMETER]: all, ...schemas } = jsonSchemas();
  const parameters = new Map<z.ZodType, object>();
  const parameterOf = (name: string, schema: z.ZodType) => {
    const component = nameIn(PARAMETERS, schema);
    const { description, ...rules } = (all?.properties?.[idOf(name, schema)] ?? {}) as JsonSchema;
    const parameter = { name, in: 'query', ...(description && { description }), schema: rules };
    if (component === undefined) return parameter;
    parameters.set(schema, parameter);
    return componentOf('parameters', component);
  };
  const paths: Record<string, object> = {};
  for (const endpoint of endpoints) {
    const [method = '', template = ''] = endpoint.split(' ');
    const path = template.replace(
      /:(\w+)/g,
      (_, name: string) => `{${name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)}}`,
    );
    const query = Object.entries(routeOf(routes, endpoint).query?.shape ?? {});
    const given = query.map(([name, schema]) => parameterOf(name, schema as z.ZodType));
    paths[path] = {
      ...(template.includes(':') && { parameters: pathParametersOf(template) }),
      ...paths[path],
      [method.toLowerCase()]: operationOf(endpoint, given),
      ...(method === 'GET' && { head: headOf(endpoint, given) }),
    };
  }
  const named = Object.entries(PARAMETERS).map(([name, schema]) => [name, parameters.get(schema)]);
  return {
    paths: yamlOf(paths, 2).replaceAll(/\n(?= {2}\/)/g, '\n\n'),
    parameters: yamlOf(Object.fromEntries(named), 4),
    responses: yamlOf(
      Object.fromEntries(Object.entries<Refusal>(REFUSALS).map(([name, each]) => [name, refusalOf(each)])),
      4,
    ),
    schemas: yamlOf(schemas, 4),
  };

  function textOf(endpoint: string): Operation<Refused> {
    const operation = api.operations[endpoint];
    if (operation === undefined) throw new Error(`${endpoint} has no text`);
    return operation;
  }

  function operationOf(endpoint: keyof RouteTable, parameters: readonly object[]) {
    const { operationId, tag, summary, description, success, headers = [], mediaTypes = [] } = textOf(endpoint);
    const { body, status = 200, reply } = routeOf(routes, endpoint);
    const schema = body === 'yaml' ? undefined : bodies.get(endpoint);
    const content = {
      ...(reply instanceof z.ZodType && { 'application/json': { schema: schemaOf(reply) } }),
      ...Object.fromEntries(mediaTypes.map((type) => [type, { schema: { type: 'string' } }])),
    };
    return {
      operationId,
      tags: [tag],
      summary,
      ...(description && { description }),
      ...(parameters.length > 0 && { parameters }),
      ...(body === 'yaml' && {
        requestBody: { required: true, content: { 'application/yaml': { schema: { type: 'string' } } } },
      }),
      ...(schema && {
        requestBody: {
          required: !schema.safeParse({}).success,
          content: { 'application/json': { schema: schemaOf(schema) } },
        },
      }),
      responses: {
        [reply === undefined ? 204 : status]: {
          description: success,
          headers: {
            ...NO_STORE,
            ...(headers.includes('Location') && { Location: componentOf('headers', 'Location') }),
            ...(headers.includes('SetCookie') && { 'Set-Cookie': componentOf('headers', 'SetCookie') }),
            ...(headers.includes('NextPage') && { Link: componentOf('headers', 'NextPage') }),
          },
          ...(reply && { content }),
        },
        ...Object.fromEntries(
          refusalsOf(endpoint).map((name) => [
            PROBLEMS[REFUSALS[name].codes[0]].status,
            componentOf('responses', name),
          ]),
        ),
      },
    };
  }

  function headOf(endpoint: keyof RouteTable, parameters: readonly object[]) {
    const { operationId, tag } = textOf(endpoint);
    return {
      operationId: api.headNames?.[endpoint] ?? operationId.replace(/^(get|list)/, 'head'),
      tags: [tag],
      summary: 'Like GET, without a body',
      ...(parameters.length > 0 && { parameters }),
      responses: { 200: componentOf('responses', 'Head'), default: componentOf('responses', 'HeadRefused') },
    };
  }

  /** Of two refusals with the same status, the last one counts. */
  function refusalsOf(endpoint: keyof RouteTable): readonly Refused[] {
    return [...api.refusalsOf(endpoint, routeOf(routes, endpoint)), ...(api.operations[endpoint]?.refusals ?? [])];
  }

  function refusalOf({ codes, description, required }: Refusal) {
    const [code] = codes;
    const { status } = PROBLEMS[code];
    const properties = { status: { const: status }, code: codes.length === 1 ? { const: code } : { enum: codes } };
    const schema = { ...schemaOf(PROBLEM), ...(required && { required }), properties };
    return {
      description,
      headers: { ...NO_STORE, 'X-Request-Id': componentOf('headers', 'RequestId'), ...HEADERS[status] },
      content: { 'application/problem+json': { schema } },
    };
  }

  function pathParametersOf(template: string): object[] {
    return [...template.matchAll(/(\w+)\/:/g)].map(([, segment = '']) => {
      return componentOf('parameters', api.pathParameters[segment] ?? segment);
    });
  }

  function schemaOf(schema: z.ZodType) {
    const name = nameIn(SCHEMAS, schema);
    if (name === undefined) throw new Error('a document of the table of routes has no name in SCHEMAS');
    return componentOf('schemas', name);
  }

  /** Two parameters of one name may have different rules. */
  function idOf(name: string, schema: z.ZodType): string {
    return nameIn(PARAMETERS, schema) ?? `other ${name}`;
  }

  /** Returns the components, and an object with all query parameters. */
  function jsonSchemas(): Record<string, JsonSchema> {
    const registry = z.registry<{ id: string }>();
    for (const [id, schema] of Object.entries(SCHEMAS)) registry.add(schema, { id });
    const queried = endpoints.flatMap((endpoint) => Object.entries(routeOf(routes, endpoint).query?.shape ?? {}));
    const parameters = queried.map(([name, schema]) => [idOf(name, schema as z.ZodType), schema]);
    registry.add(z.object(Object.fromEntries(parameters)), { id: EVERY_PARAMETER });
    const { schemas } = z.toJSONSchema(registry, {
      io: 'input',
      uri: (id) => `#/components/schemas/${id}`,
      override: ({ zodSchema, jsonSchema }) => {
        // zod leaves out defaults of converted texts.
        if (zodSchema instanceof z.ZodDefault) jsonSchema.default = zodSchema.def.defaultValue;
        simplify(jsonSchema, zodSchema === REQUESTS_PER_HOUR);
      },
    });
    return Object.fromEntries(Object.entries(schemas).map(([id, { $schema, $id, ...schema }]) => [id, schema]));
  }
}

function componentOf(kind: string, name: string) {
  return { $ref: `#/components/${kind}/${name}` };
}

function nameIn(components: Readonly<Record<string, z.ZodType>>, schema: z.ZodType): string | undefined {
  return Object.keys(components).find((name) => components[name] === schema);
}

function yamlOf(section: object, indent: number): string {
  // YAML 1.1 readers would take an unquoted time for a date.
  const document = new Document(section, { aliasDuplicateObjects: false, version: '1.1' });
  visit(document, {
    Collection(_, node) {
      if (isCollection(node)) node.flow = JSON.stringify(node).length <= MAX_FLOW_LENGTH;
    },
  });
  return document
    .toString({ lineWidth: 120 - indent, flowCollectionPadding: true })
    .trimEnd()
    .replaceAll(/^(?=.)/gm, ' '.repeat(indent));
}

/** Removes what an OpenAPI file does not need, and writes a nullable type as `type: [string, "null"]`. */
function simplify(schema: JsonSchema, keepMaximum: boolean): void {
  if (schema.$ref !== undefined) {
    // The rules are those of the schema referred to.
    for (const name of ['type', 'format', 'pattern', 'examples'] as const) delete schema[name];
  }
  delete schema.propertyNames;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (!keepMaximum && schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.format === 'date-time' && schema.pattern !== undefined) schema.pattern = 'Z$';
  const [inner, nothing] = schema.anyOf ?? [];
  if (schema.anyOf?.length !== 2 || nothing?.type !== 'null' || typeof inner?.type !== 'string') return;
  delete schema.anyOf;
  const { type, enum: values, ...rest } = inner;
  Object.assign(schema, { type: [type, 'null'] }, rest, values && { enum: [...values, null] });
}
