/** The schemas of docs/openapi/admin.yaml, as YAML, from the documents that the admin listener and its client share. */
import { Document, isCollection, visit } from 'yaml';
import { z } from 'zod';
import * as requests from '../src/admin-api/requests.ts';
import * as responses from '../src/admin-api/responses.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

const CONTEXT = { plans: new Set<string>(), nowMs: Date.now };
const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  Problem: responses.PROBLEM,
  CustomerId: responses.CUSTOMER_ID,
  DisplayName: requests.DISPLAY_NAME,
  NotifyUrl: requests.NOTIFY_URL,
  PlanName: requests.PLAN_NAME,
  RequestsPerHour: requests.REQUESTS_PER_HOUR,
  FutureTime: requests.FUTURE_TIME,
  NewCustomer: requests.newCustomer(CONTEXT),
  CustomerChange: requests.customerChange(CONTEXT),
  KeyCreation: requests.keyCreation(CONTEXT),
  KeyChange: requests.keyChange(CONTEXT),
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
  AuditEntry: responses.AUDIT_ENTRY,
  AuditPage: responses.AUDIT_PAGE,
  Configuration: responses.CONFIGURATION,
  ConfigurationChange: responses.CONFIGURATION_CHANGE,
  Reload: responses.RELOAD,
  Preview: responses.PREVIEW,
  Status: responses.STATUS,
};

/** Mappings and lists up to this length of JSON are written on one line. */
const MAX_FLOW_LENGTH = 96;

/** Returns the entries of `components.schemas`, indented for their place in the file. */
export function adminSchemas(): string {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(SCHEMAS)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io: 'input',
    uri: (id) => `#/components/schemas/${id}`,
    override: ({ zodSchema, jsonSchema }) => simplify(jsonSchema, zodSchema === requests.REQUESTS_PER_HOUR),
  });
  // YAML 1.1 readers would take an unquoted time for a date.
  const document = new Document(
    Object.fromEntries(Object.entries(schemas).map(([id, { $schema, $id, ...schema }]) => [id, schema])),
    { aliasDuplicateObjects: false, version: '1.1' },
  );
  visit(document, {
    Collection(_, node) {
      if (isCollection(node)) node.flow = JSON.stringify(node).length <= MAX_FLOW_LENGTH;
    },
  });
  return document
    .toString({ lineWidth: 116, flowCollectionPadding: true })
    .trimEnd()
    .replaceAll(/^(?=.)/gm, '    ');
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
