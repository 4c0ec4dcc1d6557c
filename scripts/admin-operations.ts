/** The texts of the operations in docs/openapi/admin.yaml, and what the table of routes does not say about their replies. */
import type { Endpoint } from '../src/api/admin/routes.ts';
import type { RefusalName } from './admin-refusals.ts';
import type { Operation } from './openapi-sections.ts';

/** `IssuerUnavailable` instead of `Unavailable`: the operation does not need the store. */
export const OPERATIONS: Readonly<Record<Endpoint, Operation<RefusalName>>> = {
  'GET /status': {
    operationId: 'getStatus',
    tag: 'operation',
    summary: 'State of this instance: version, configuration, store and upstreams',
    success: 'The state of the instance that serves this request.',
    refusals: ['IssuerUnavailable'],
  },
  'GET /admin/v1/config': {
    operationId: 'getConfig',
    tag: 'operation',
    summary: 'The running configuration, without secrets',
    success: 'The configuration of the instance that serves this request.',
    refusals: ['IssuerUnavailable'],
  },
  'GET /admin/v1/config/file': {
    operationId: 'getConfigFile',
    tag: 'operation',
    summary: 'What the running config file sets, without secrets',
    description:
      'Without comments, and with variables as written. Written as YAML, it can be changed and sent to a preview, in which `(secret)` stands for the running secret.',
    success: 'The file of the instance that serves this request.',
    refusals: ['IssuerUnavailable'],
  },
  'POST /admin/v1/config/reload': {
    operationId: 'reloadConfig',
    tag: 'operation',
    summary: 'Reload the config file',
    description:
      'Reloads the file of the instance that serves this request. Without this call, each instance notices a changed file itself. The file is applied completely or not at all: 422 if it has errors, 409 if it changes a setting that needs a restart, or drops a plan that customers hold.',
    success: 'The file is applied, or equals the running configuration.',
    refusals: ['Conflict', 'Unprocessable'],
  },
  'POST /admin/v1/config/preview': {
    operationId: 'previewConfig',
    tag: 'operation',
    summary: 'What a config file would change, and which customers it would affect now',
    description:
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of the config file
      "The file is not applied. `${NAME}` is replaced, and a named file is opened, only if the running config has the same text or file for the same setting; otherwise the response is 422. Secrets are not compared; `(secret)` stands for the running one. Relative file names are relative to the folder of the gateway's own config file. Only one preview runs at a time: meanwhile, others get 503 `overloaded`. The audit has an entry for each preview, without the file's content.",
    success: "The limits before and after, compared with each customer's usage of the last hour.",
  },
  'GET /admin/v1/customers': {
    operationId: 'listCustomers',
    tag: 'customers',
    summary: 'List customers, all or filtered',
    success: 'A page of the list.',
  },
  'POST /admin/v1/customers': {
    operationId: 'createCustomer',
    tag: 'customers',
    summary: 'Create a customer',
    success: 'Created.',
    headers: ['Location'],
    refusals: ['Conflict'],
  },
  'GET /admin/v1/usage': {
    operationId: 'listUsage',
    tag: 'customers',
    summary: 'Usage of all customers in the last hour',
    success: 'A page of the list, in the same order as the list of customers unless `above` is given.',
  },
  'GET /admin/v1/customers/:id': {
    operationId: 'getCustomer',
    tag: 'customers',
    summary: 'One customer, with its effective limit',
    success: 'The customer.',
  },
  'PATCH /admin/v1/customers/:id': {
    operationId: 'updateCustomer',
    tag: 'customers',
    summary: 'Change the given members of a customer',
    success: 'The customer after the change, even if no member was given.',
  },
  'DELETE /admin/v1/customers/:id': {
    operationId: 'deleteCustomer',
    tag: 'customers',
    summary: 'Delete a customer with its keys and its usage',
    success: 'Deleted.',
  },
  'POST /admin/v1/customers/:id/notify-secret': {
    operationId: 'createNotifySecret',
    tag: 'customers',
    summary: 'Create the secret that signs the notices to the customer',
    description:
      "The customer's `notify_url` gets notices once it has a secret (docs/notices.md). A former secret stays valid for 24 hours, during which notices have both signatures. A second rotation within that time discards the first secret.",
    success: 'The new secret. Only this response has it.',
  },
  'POST /admin/v1/customers/:id/portal-sessions': {
    operationId: 'createPortalSession',
    tag: 'customers',
    summary: 'Create a link that opens the portal for the customer',
    description:
      'Send the signed-in user of the customer to the link (docs/portal.md). The code in its fragment works once. A customer has at most 200 links, sessions and tokens: a further one ends the one that would expire first. 422 if no portal is configured.',
    success: 'The link. Only this response has it.',
  },
  'DELETE /admin/v1/customers/:id/portal-sessions': {
    operationId: 'endPortalSessions',
    tag: 'customers',
    summary: 'End all links, sessions and tokens of the customer for the portal, in every instance',
    success: 'Ended.',
  },
  'POST /admin/v1/customers/:id/portal-tokens': {
    operationId: 'createPortalToken',
    tag: 'customers',
    summary: "Create a bearer token for the portal's API",
    description:
      'For a dashboard of your own, whose server calls the API that docs/openapi/portal.yaml describes. `return_url` has no effect. 422 if no portal is configured.',
    success: 'The token. Only this response has it.',
  },
  'GET /admin/v1/customers/:id/usage': {
    operationId: 'getUsage',
    tag: 'customers',
    summary: 'Usage of a customer in the last hour',
    description: '422 if the customer has no limit: its `limit_problem` says why.',
    success: 'The usage as counted in the store.',
    refusals: ['Unprocessable'],
  },
  'DELETE /admin/v1/customers/:id/usage': {
    operationId: 'resetUsage',
    tag: 'customers',
    summary: 'Set the usage of a customer to 0',
    description: '422 if a period is to be reset, and the customer has none.',
    success: 'The whole limit is available again.',
  },
  'GET /admin/v1/customers/:id/usage/history': {
    operationId: 'getUsageHistory',
    tag: 'customers',
    summary: 'What a customer used, by hour or day',
    description: 'Without `from`: the last 24 hours or 35 days. At most 1,000 points.',
    success: 'One point for each hour or day.',
  },
  'GET /admin/v1/usage/history': {
    operationId: 'getUsageTotals',
    tag: 'customers',
    summary: 'Requests and refusals by plan, by hour or day',
    description: '422 also if the history is turned off.',
    success: 'One point for each hour or day.',
  },
  'GET /admin/v1/usage/near': {
    operationId: 'listNearCustomers',
    tag: 'customers',
    summary: 'The customers nearest to their limits',
    description: 'Over all instances, highest percentage first. 422 also if the history is turned off.',
    success: 'Their present usage.',
  },
  'GET /admin/v1/usage/refused': {
    operationId: 'listRefusedCustomers',
    tag: 'customers',
    summary: 'Which customers were refused in the last hour, and why',
    description:
      'By all gateways, most recent first. One entry for each customer and code. Refusals by other gateways are up to 10 seconds late; the usage history counts them by UTC hours, so they include the hour before. Without the history or the store: from the memory of the gateway that is asked.',
    success: 'Refused requests by customer and code.',
    refusals: ['IssuerUnavailable'],
  },
  'GET /admin/v1/routes/deprecated/customers': {
    operationId: 'listDeprecatedCalls',
    tag: 'customers',
    summary: 'Which customers call routes that have a deprecation or a sunset',
    description:
      'By all gateways in the last 35 UTC days, the latest calls first; at most 10,000. Up to 10 seconds late, and approximate, as refusals are. Without deleted customers. 422 if the history is turned off.',
    success: 'The calls by customer and route.',
    refusals: ['Unprocessable'],
  },
  'GET /admin/v1/usage/export': {
    operationId: 'exportUsage',
    tag: 'customers',
    summary: 'The usage of closed hours, for billing',
    description:
      'One line per customer and hour with data, of one page of customers. The Link header has the next page; repeat a truncated page. All pages end at the same hour: the cursor has it. The id of a line is `<customer>/<hour>`, so that a line that is sent twice does no harm. 422 also if the history is turned off.',
    success: 'The lines.',
    mediaTypes: ['text/csv', 'application/x-ndjson'],
    headers: ['NextPage'],
  },
  'GET /admin/v1/usage/periods': {
    operationId: 'listUsagePeriods',
    tag: 'customers',
    summary: 'What customers used in days and months that are over, for billing',
    description:
      'Periods that ended at least 30 seconds ago and counted at least one unit. They do not change any more, and are kept for 40 days. The id is `<customer>/<starts_at>`, so that a period that is sent twice does no harm. A page may have fewer periods than `limit`. Periods that end between two pages are on none of them. With `format`, a page is lines, and the Link header has the next page.',
    success: 'A page of the list.',
    mediaTypes: ['text/csv', 'application/x-ndjson'],
    headers: ['NextPage'],
  },
  'GET /admin/v1/customers/:id/explain': {
    operationId: 'explainLimit',
    tag: 'customers',
    summary: 'The effective limit, and the record or config line that sets it',
    success: 'The limit and its origin.',
  },
  'GET /admin/v1/customers/:id/keys': {
    operationId: 'listCustomerKeys',
    tag: 'keys',
    summary: 'The keys of one customer',
    description:
      'Oldest first within a page, so a list that fits into one page is sorted as a whole. A page other than the last may have fewer keys than `limit`.',
    success: 'A page of the list.',
  },
  'POST /admin/v1/customers/:id/keys': {
    operationId: 'createKey',
    tag: 'keys',
    summary: 'Create a key, or import an existing one',
    description:
      'Without `value` and `sha256`, generates a key. With one of them, imports an existing key of another system. If the gateway already has the key, the response is 409, and `key_owner` shows whose key it is.',
    success: 'Created. Only this response has `key`; for an imported key it is omitted.',
    headers: ['Location'],
    refusals: ['KeyConflict'],
  },
  'GET /admin/v1/keys': {
    operationId: 'listKeys',
    tag: 'keys',
    summary: 'List keys, all or filtered',
    success: 'A page of the list.',
  },
  'GET /admin/v1/keys/:keyId': {
    operationId: 'getKey',
    tag: 'keys',
    summary: 'One key, without its value',
    success: 'The key.',
  },
  'PATCH /admin/v1/keys/:keyId': {
    operationId: 'updateKey',
    tag: 'keys',
    summary: 'Change name, expiry, restrictions or limit',
    description:
      'Another limit applies to the requests that follow, in every instance within a second; what the key used stays. An expired key cannot get a new `expires_at`. The `expires_at` of a replaced key can be changed, but not to null. Both attempts get 409.',
    success: 'The key after the change, even if no member was given.',
    refusals: ['Conflict'],
  },
  'DELETE /admin/v1/keys/:keyId': {
    operationId: 'revokeKey',
    tag: 'keys',
    summary: 'Revoke a key at once; this cannot be undone',
    success: 'Revoked, by this call or an earlier one.',
  },
  'GET /admin/v1/keys/:keyId/usage': {
    operationId: 'getKeyUsage',
    tag: 'keys',
    summary: 'Usage of a key in the last hour, if it has a limit of its own',
    description: 'Keys that replaced each other share it. 422 if the limit in its record is unreadable.',
    success: 'The usage as counted in the store.',
    refusals: ['Unprocessable'],
  },
  'DELETE /admin/v1/keys/:keyId/usage': {
    operationId: 'resetKeyUsage',
    tag: 'keys',
    summary: 'Set the usage of a key to 0',
    description:
      'Keys that replaced each other share it; those that are refused remember it for at most 30 seconds. The usage of the customer stays. 422 if the key has no limit of its own, or an unreadable one.',
    success: 'The whole limit of the key is available again.',
    refusals: ['Unprocessable'],
  },
  'POST /admin/v1/keys/:keyId/rotate': {
    operationId: 'rotateKey',
    tag: 'keys',
    summary: 'Create a key that replaces this one after a grace period',
    description:
      'The old key stays valid until the grace period ends, but never beyond its own expiry. Both keys use the quota of the customer and, if they have a limit, one hour. 409 if the old key is revoked, expired or already replaced.',
    success:
      'The new key, with the same customer, name, restrictions and limit, without expiry. Only this response has `key`.',
    headers: ['Location'],
    refusals: ['Conflict'],
  },
  'GET /admin/v1/notices': {
    operationId: 'listNotices',
    tag: 'operation',
    summary: 'Webhook notices that are not delivered, oldest first',
    description:
      'Of all gateways. Without `state`, those with a pending delivery come first, then those with dead ones only.',
    success: 'A page of notices. At most the newest 10,000 dead ones are kept.',
  },
  'POST /admin/v1/notices/test': {
    operationId: 'testNotices',
    tag: 'operation',
    summary: 'Send a test notice, and wait for the responses',
    description:
      'Sent once to each endpoint of the configuration, or with `customer` to the `notify_url` of that customer. It has the type `test`, is signed like any other, and is never repeated. 422 if there is no endpoint.',
    success: 'What each endpoint responded, after at most 15 seconds.',
    refusals: ['NotFound'],
  },
  'POST /admin/v1/notices/:id/retry': {
    operationId: 'retryNotice',
    tag: 'operation',
    summary: 'Send a notice again to the endpoints that do not have it',
    description:
      'All deliveries of the notice, pending and dead, are due at once and have all attempts again. An endpoint that was disabled by its response 410 is enabled. The notice keeps its id.',
    success: 'The notice, which a gateway sends within seconds.',
  },
  'GET /admin/v1/requests': {
    operationId: 'listRequests',
    tag: 'operation',
    summary: 'Requests that were refused or failed, newest first',
    description:
      'Requests of all instances that the gateway refused, that failed, or whose client left before the response; of the public and the check listener, without those by `/nginx` and dry runs. Up to 10 s late. `requests` in the configuration bounds their age and number; beyond it, the oldest of those with the most go first. More than 20 a second of one customer, or of one address without a valid key, are not all recorded. 422 if the configuration turns the records off.',
    success: 'A page of the list.',
    refusals: ['Unprocessable'],
  },
  'GET /admin/v1/requests/:requestId': {
    operationId: 'getRequest',
    tag: 'operation',
    summary: 'The refused or failed requests with this request_id',
    description:
      'The id is `request_id` of a problem document, and the header `X-Request-Id` of a response. Several requests have the same one if their client chose it: the newest 20 are returned. See the list for what is recorded.',
    success: 'The requests, newest first.',
    refusals: ['Unprocessable'],
  },
  'GET /admin/v1/maintenance': {
    operationId: 'getMaintenance',
    tag: 'operation',
    summary: 'The maintenance of all instances',
    success: 'What is in force now.',
  },
  'PUT /admin/v1/maintenance': {
    operationId: 'setMaintenance',
    tag: 'operation',
    summary: 'Begin, change or end the maintenance of all instances',
    description:
      'Takes effect in every instance within a second, and survives restarts. Refused requests get 503 `maintenance` and are not counted; those in progress complete. It never concerns `usage_path`, the portal and the admin API. 422 also for a route that the configuration does not have.',
    success: 'What is in force from now on.',
  },
  'GET /admin/v1/audit': {
    operationId: 'listAudit',
    tag: 'operation',
    summary: 'Who changed what, when and from where, newest first',
    success: 'A page of entries. Entries are kept for 400 days, and at most the newest 500,000.',
  },
};
