/**
 * The generated sections of docs/openapi/admin.yaml, as YAML: paths, query parameters, refusals and schemas. They come from
 * the table of routes and the documents that the admin listener shares with its clients.
 */
import { Document, isCollection, visit } from 'yaml';
import { z } from 'zod';
import * as queries from '../src/admin-api/queries.ts';
import * as requests from '../src/admin-api/requests.ts';
import * as responses from '../src/admin-api/responses.ts';
import { routeOf } from '../src/admin-api/route-table.ts';
import { ADMIN_ROUTES, type Endpoint } from '../src/admin-api/routes.ts';
import { PROBLEMS } from '../src/problems/table.ts';
import { OPERATIONS } from './admin-operations.ts';
import { REFUSALS, type Refusal, type RefusalName } from './admin-refusals.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

const ENDPOINTS = Object.keys(ADMIN_ROUTES) as Endpoint[];
const BODIES = new Map(
  ENDPOINTS.flatMap((endpoint) => {
    const { body } = routeOf(ADMIN_ROUTES, endpoint);
    return typeof body === 'function' ? [[endpoint, body({ plans: new Set(), nowMs: Date.now })]] : [];
  }),
);

function bodyOf(endpoint: Endpoint): z.ZodType {
  const body = BODIES.get(endpoint);
  if (body === undefined) throw new Error(`${endpoint} has no JSON body`);
  return body;
}

const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  Problem: responses.PROBLEM,
  CustomerId: responses.CUSTOMER_ID,
  DisplayName: requests.DISPLAY_NAME,
  NotifyUrl: requests.NOTIFY_URL,
  PlanName: requests.PLAN_NAME,
  RequestsPerHour: requests.REQUESTS_PER_HOUR,
  FutureTime: requests.FUTURE_TIME,
  NewCustomer: bodyOf('POST /admin/v1/customers'),
  CustomerChange: bodyOf('PATCH /admin/v1/customers/:id'),
  KeyCreation: bodyOf('POST /admin/v1/customers/:id/keys'),
  KeyChange: bodyOf('PATCH /admin/v1/keys/:keyId'),
  Rotation: requests.ROTATION,
  Time: responses.TIME,
  RecordTime: responses.RECORD_TIME,
  NextCursor: responses.NEXT_CURSOR,
  CurrentPlan: responses.CURRENT_PLAN,
  EffectiveLimit: responses.EFFECTIVE_LIMIT,
  LimitSource: responses.LIMIT_SOURCE,
  LimitProblem: responses.LIMIT_PROBLEM,
  Customer: responses.CUSTOMER,
  NotifySecret: responses.NOTIFY_SECRET,
  PortalSessionRequest: requests.PORTAL_SESSION_REQUEST,
  PortalLink: responses.PORTAL_LINK,
  PortalToken: responses.PORTAL_TOKEN,
  CustomerPage: responses.CUSTOMER_PAGE,
  Explanation: responses.EXPLANATION,
  Usage: responses.USAGE,
  UsagePage: responses.USAGE_PAGE,
  UsageHistory: responses.USAGE_HISTORY,
  UsageTotals: responses.USAGE_TOTALS,
  NearCustomers: responses.NEAR_CUSTOMERS,
  RefusedCustomers: responses.REFUSED_CUSTOMERS,
  NewKey: responses.NEW_KEY,
  RotatedKey: responses.ROTATED_KEY,
  Key: responses.KEY,
  KeyPage: responses.KEY_PAGE,
  Notice: responses.NOTICE,
  NoticePage: responses.NOTICE_PAGE,
  NoticeTest: responses.NOTICE_TEST,
  AuditEntry: responses.AUDIT_ENTRY,
  AuditPage: responses.AUDIT_PAGE,
  Configuration: responses.CONFIGURATION,
  ConfigurationChange: responses.CONFIGURATION_CHANGE,
  Reload: responses.RELOAD,
  Preview: responses.PREVIEW,
  Status: responses.STATUS,
};

/** Query parameters that several operations have, or that have a name of their own. Others stand in their operations. */
const PARAMETERS: Readonly<Record<string, z.ZodType>> = {
  NoticeState: queries.NOTICE_STATE,
  From: queries.FROM,
  To: queries.TO,
  Limit: queries.LIMIT,
  Cursor: queries.CURSOR,
  UnusedDays: queries.UNUSED_DAYS,
  ExpiringDays: queries.EXPIRING_DAYS,
  KeyPrefix: queries.KEY_PREFIX,
  KeySha256: queries.SHA256,
  Plan: queries.PLAN,
  Suspended: queries.SUSPENDED,
  IdPrefix: queries.ID_PREFIX,
  Search: queries.SEARCH,
  AuditCustomer: queries.AUDIT_CUSTOMER,
  AuditAction: queries.AUDIT_ACTION,
};

/** Parameters of paths, by the segment before them. Their components are written by hand. */
const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  customers: 'CustomerId',
  keys: 'KeyId',
  notices: 'NoticeId',
};

/** Of the operations whose names are not `head` and the rest of the name of GET. */
const HEAD_NAMES: { readonly [Each in Endpoint]?: string } = {
  'GET /admin/v1/usage': 'headUsageList',
  'GET /admin/v1/usage/export': 'headUsageExport',
  'GET /admin/v1/customers/:id/explain': 'headExplanation',
};

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
export function adminSections(): Readonly<Record<'paths' | 'parameters' | 'responses' | 'schemas', string>> {
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
  for (const endpoint of ENDPOINTS) {
    const [method = '', template = ''] = endpoint.split(' ');
    const path = template.replace(
      /:(\w+)/g,
      (_, name: string) => `{${name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)}}`,
    );
    const query = Object.entries(routeOf(ADMIN_ROUTES, endpoint).query?.shape ?? {});
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
    responses: yamlOf(Object.fromEntries(Object.entries(REFUSALS).map(([name, each]) => [name, refusalOf(each)])), 4),
    schemas: yamlOf(schemas, 4),
  };
}

function operationOf(endpoint: Endpoint, parameters: readonly object[]) {
  const { operationId, tag, summary, description, success, headers = [], mediaTypes = [] } = OPERATIONS[endpoint];
  const { body, status = 200, reply } = routeOf(ADMIN_ROUTES, endpoint);
  const schema = body === 'yaml' ? undefined : BODIES.get(endpoint);
  const content =
    reply instanceof z.ZodType
      ? { 'application/json': { schema: schemaOf(reply) } }
      : Object.fromEntries(mediaTypes.map((type) => [type, { schema: { type: 'string' } }]));
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
          ...(headers.includes('NextPage') && { Link: componentOf('headers', 'NextPage') }),
        },
        ...(reply && { content }),
      },
      ...Object.fromEntries(
        refusalsOf(endpoint).map((name) => [PROBLEMS[REFUSALS[name].codes[0]].status, componentOf('responses', name)]),
      ),
    },
  };
}

function headOf(endpoint: Endpoint, parameters: readonly object[]) {
  const { operationId, tag } = OPERATIONS[endpoint];
  return {
    operationId: HEAD_NAMES[endpoint] ?? operationId.replace(/^(get|list)/, 'head'),
    tags: [tag],
    summary: 'Like GET, without a body',
    ...(parameters.length > 0 && { parameters }),
    responses: { 200: componentOf('responses', 'Head'), default: componentOf('responses', 'HeadRefused') },
  };
}

/** Of two refusals with the same status, the last one counts. */
function refusalsOf(endpoint: Endpoint): RefusalName[] {
  const { query, body } = routeOf(ADMIN_ROUTES, endpoint);
  return [
    'Unauthorized',
    'Forbidden',
    'TooManyFailures',
    'InternalError',
    'Unavailable',
    ...(endpoint.includes(':') ? (['NotFound'] as const) : []),
    ...(typeof body === 'function' ? (['MalformedJson'] as const) : []),
    ...(body === undefined ? [] : (['BodyTooLarge', 'UnsupportedMediaType', 'Unprocessable'] as const)),
    ...(query === undefined ? [] : (['Unprocessable'] as const)),
    ...(OPERATIONS[endpoint].refusals ?? []),
  ];
}

function refusalOf({ codes, description, required }: Refusal) {
  const [code] = codes;
  const { status } = PROBLEMS[code as (typeof codes)[number]];
  const properties = { status: { const: status }, code: codes.length === 1 ? { const: code } : { enum: codes } };
  const schema = { ...schemaOf(responses.PROBLEM), ...(required && { required }), properties };
  return {
    description,
    headers: { ...NO_STORE, 'X-Request-Id': componentOf('headers', 'RequestId'), ...HEADERS[status] },
    content: { 'application/problem+json': { schema } },
  };
}

function pathParametersOf(template: string): object[] {
  return [...template.matchAll(/(\w+)\/:/g)].map(([, segment = '']) => {
    return componentOf('parameters', PATH_PARAMETERS[segment] ?? segment);
  });
}

function componentOf(kind: string, name: string) {
  return { $ref: `#/components/${kind}/${name}` };
}

function schemaOf(schema: z.ZodType) {
  const name = nameIn(SCHEMAS, schema);
  if (name === undefined) throw new Error('a document of the table of routes has no name in SCHEMAS');
  return componentOf('schemas', name);
}

function nameIn(components: Readonly<Record<string, z.ZodType>>, schema: z.ZodType): string | undefined {
  return Object.keys(components).find((name) => components[name] === schema);
}

/** Two parameters of one name may have different rules. */
function idOf(name: string, schema: z.ZodType): string {
  return nameIn(PARAMETERS, schema) ?? `other ${name}`;
}

/** Returns the components, and an object with all query parameters. */
function jsonSchemas(): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(SCHEMAS)) registry.add(schema, { id });
  const queried = ENDPOINTS.flatMap((endpoint) => Object.entries(routeOf(ADMIN_ROUTES, endpoint).query?.shape ?? {}));
  const parameters = queried.map(([name, schema]) => [idOf(name, schema as z.ZodType), schema]);
  registry.add(z.object(Object.fromEntries(parameters)), { id: EVERY_PARAMETER });
  const { schemas } = z.toJSONSchema(registry, {
    io: 'input',
    uri: (id) => `#/components/schemas/${id}`,
    override: ({ zodSchema, jsonSchema }) => {
      // zod leaves out defaults of converted texts.
      if (zodSchema instanceof z.ZodDefault) jsonSchema.default = zodSchema.def.defaultValue;
      simplify(jsonSchema, zodSchema === requests.REQUESTS_PER_HOUR);
    },
  });
  return Object.fromEntries(Object.entries(schemas).map(([id, { $schema, $id, ...schema }]) => [id, schema]));
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
