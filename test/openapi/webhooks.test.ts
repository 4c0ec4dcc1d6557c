/** The webhooks of docs/openapi/public.yaml are what gateways send: each body and header, and no other type. */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { systemScheduler } from '../../src/base/clock.ts';
import { ExpiringKeys } from '../../src/customers/notices/expiring-keys.ts';
import { LevelObserver } from '../../src/customers/notices/level-observer.ts';
import { bodyOf, NOTICE_TYPES, parseNotice } from '../../src/customers/notices/notice.ts';
import { newWebhookSecret, parseWebhookSecret, signatureHeaders } from '../../src/formats/webhook-signature.ts';
import type { NewNotice } from '../../src/store/notices.ts';

const DAY_MS = 24 * 3600 * 1000;
const FILE = parse(readFileSync(new URL('../../docs/openapi/public.yaml', import.meta.url), 'utf8'));
const ajv = new Ajv2020({ allErrors: true, strict: false, formats: { 'date-time': /^\d{4}-.*Z$/ } });
ajv.addSchema(FILE, 'file');

/** Notices as the parts that make them do. */
async function makeNotices(): Promise<NewNotice[]> {
  const made: NewNotice[] = [];
  const take = async ({ notice }: { readonly notice: NewNotice }) => made.push(notice) > 0;
  const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };
  for (const used of [80, 100]) {
    const common = { created: () => {}, customers: 10, clock, scheduler: systemScheduler };
    const notices = { addOnce: take, extend: async () => false };
    const levels = new LevelObserver({ ...common, notices, usages: { settledOf: async () => used } }, [80]);
    levels.reached('acme', 100, { used, waitMs: 41_000, storeTimeMs: Date.now(), holdEndMs: 0, epoch: 'e' });
  }
  const key = { id: 'key_1', customer: 'acme', expiresAt: new Date(Date.now() + DAY_MS).toISOString() };
  const keys = new ExpiringKeys({
    records: { listKeys: async () => ({ items: [key], next: undefined }) },
    notices: { addOnce: take },
    storeIsUp: () => true,
    days: () => [7],
    created: () => {},
    onFailure: () => {},
    clock,
    scheduler: systemScheduler,
    random: () => 0,
  });
  keys.start();
  onTestFinished(() => keys.close());
  await expect.poll(() => made.length, { timeout: 10_000 }).toBe(3);
  return made;
}

test('each type has its webhook, of which the body and the headers are as sent', async () => {
  const types = new Set<string>();
  for (const { id, content } of await makeNotices()) {
    const notice = parseNotice(content);
    if (notice === undefined) throw new Error('the notice cannot be parsed');
    types.add(notice.type);
    const { post } = FILE.webhooks[notice.type];
    // The sender knows the plan.
    const body = bodyOf({ ...notice, data: { ...notice.data, plan: 'starter' } });
    const schema = post.requestBody.content['application/json'].schema.$ref;
    const validate = ajv.compile({ $ref: `file${schema}` });
    expect(validate(JSON.parse(body)), JSON.stringify(validate.errors)).toBe(true);
    const { data } = FILE.components.schemas[schema.split('/').at(-1)].properties;
    const declared = data.$ref === undefined ? data : FILE.components.schemas[data.$ref.split('/').at(-1)];
    expect(Object.keys(notice.data).sort()).toEqual(Object.keys(declared.properties).sort());

    const secrets = [newWebhookSecret(), newWebhookSecret()].flatMap((secret) => parseWebhookSecret(secret) ?? []);
    const headers: Record<string, string> = { ...signatureHeaders({ id, body }, secrets, Date.now()) };
    const parameters = post.parameters.map(({ $ref }: { $ref: string }) => {
      return FILE.components.parameters[$ref.split('/').at(-1) ?? ''];
    });
    expect(parameters.map(({ name }: { name: string }) => name).sort()).toEqual(Object.keys(headers).sort());
    for (const { name, schema } of parameters) expect(headers[name]).toMatch(new RegExp(schema.pattern));
  }
  expect([...types].sort()).toEqual([...NOTICE_TYPES].sort());
  expect(Object.keys(FILE.webhooks).sort()).toEqual([...types].sort());
});
