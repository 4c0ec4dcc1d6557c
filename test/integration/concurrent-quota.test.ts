import { describe, it } from 'vitest';
import { REDIS_STORE } from '../support/gateway.ts';
import { expectExactQuota } from './concurrent-quota.ts';

describe.each([REDIS_STORE])('the hourly quota over $name', (store) => {
  it('of 1,100 concurrent requests of a Starter customer exactly 1,000 reach the backend, and 100 must wait', () =>
    expectExactQuota(store));
});
