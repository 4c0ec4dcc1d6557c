/** What the recorder tells the usage history and the metrics of limits of several kinds. */
import { expect, test } from 'vitest';
import type { QuotaDecision } from '../../src/customers/quota/customer-quota.ts';
import { createRecorder } from '../../src/edge/recorder.ts';
import type { RequestContext } from '../../src/edge/request-context.ts';

const HOUR = { policy: 'hourly', amount: 1000 } as const;
const KEY = { policy: 'key', amount: 10, root: 'key_1' } as const;
const context = { customer: 'acme', plan: 'starter', keyId: 'key_1' } as RequestContext;

function record() {
  const near: number[] = [];
  const decisions: unknown[][] = [];
  const recorder = createRecorder({
    metrics: { quotaDecision: (...labels: unknown[]) => void decisions.push(labels) },
    history: { near: (_customer: string, percent: number) => near.push(percent) },
    clock: { monotonicMs: () => 0, nowMs: () => 0 },
  } as unknown as Parameters<typeof createRecorder>[0]);
  return { recorder, near, decisions };
}

test("a key that is used up does not make its customer one that is near its limit, and the customer's own limits do", () => {
  const { recorder, near, decisions } = record();
  const refused = (...violated: unknown[]) =>
    recorder.decided(context, { outcome: 'quota_exceeded', mode: 'store', violated } as unknown as QuotaDecision);
  const admitted = (...left: number[]) => {
    const admission = { mode: 'lease', remaining: (index: number) => left[index] };
    recorder.decided(context, { outcome: 'admitted', limits: [HOUR, KEY], admission } as unknown as QuotaDecision);
  };
  admitted(900, 0);
  refused(KEY);
  expect(near).toEqual([]);
  admitted(400, 5);
  refused(HOUR, KEY);
  expect(near).toEqual([60, 100]);
  expect(decisions).toEqual([
    ['starter', 'hourly', 'allowed', 'lease'],
    ['starter', 'key', 'denied', 'store'],
    ['starter', 'hourly', 'allowed', 'lease'],
    ['starter', 'hourly', 'denied', 'store'],
    ['starter', 'key', 'denied', 'store'],
  ]);
});
