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

const HOUR_MS = 3600 * 1000;
const DAY_MS = 24 * HOUR_MS;
const FILE = parse(readFileSync(new URL('../../docs/openapi/public.yaml', import.meta.url), 'utf8'));
const ajv = new Ajv2020({ allErrors: true, strict: false, formats: { 'date-time': /^\d{4}-.*Z$/ } });
ajv.addSchema(FILE, 'file');

const CEILING = {
  limit: { policy: 'key', amount: 100, root: 'key_1' },
  keyId: 'key_1',
  leases: '',
  usageResetAt: '',
} as const;

/** Notices as the parts that make them do. */
async function makeNotices(): Promise<NewNotice[]> {
  const made: NewNotice[] = [];
  const take = async ({ notice }: { readonly notice: NewNotice }) => made.push(notice) > 0;
  const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };
  for (const used of [80, 100]) {
    const common = { created: () => {}, customers: 10, clock, scheduler: systemScheduler };
    const notices = { addOnce: take, extend: async () => false };
    const usages = { settledOf: async () => used, usedOf: async () => [used] };
    const [startHour, endHour] = [Math.floor(Date.now() / HOUR_MS), Math.floor(Date.now() / HOUR_MS) + 24];
    const counted = { plan: 'p', startMs: startHour * HOUR_MS, endMs: endHour * HOUR_MS, included: 100, used };
    const periods = {
      periodsOf: async () => [{ periods: [{ ...counted, forgiven: 0, overage: 0 }], isDamaged: false }],
    };
    const levels = new LevelObserver({ ...common, notices, usages, periods }, [80]);
    const count = { used, waitMs: 41_000, storeTimeMs: Date.now(), holdEndMs: 0, epoch: 'e' };
    levels.reached('acme', 100, { policy: 'hourly', ...count });
    levels.reached('acme', 100, { policy: 'daily', period: { startHour, endHour, beyond: 'allow' }, ...count });
    levels.reached('acme', 100, { policy: 'key', ...count }, CEILING);
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
  await expect.poll(() => made.length).toBe(7);
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
    const members = Object.keys(declared.properties).filter(
      (name) =>
        (name !== 'beyond' || notice.data.window === 'daily') &&
        (name !== 'key_id' || notice.type === 'key.expiring' || notice.data.window === 'key'),
    );
    expect(Object.keys(notice.data).sort()).toEqual(members.sort());

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
