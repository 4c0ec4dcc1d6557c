import { describe, expect, it } from 'vitest';
import { bearer } from '../support/admin.ts';
import { STORES } from '../support/gateway.ts';
import { startSystem } from '../support/system.ts';

describe.each(STORES)('the hourly quota over $name', (store) => {
  it('of 1,100 concurrent requests of a Starter customer exactly 1,000 reach the backend, and 100 must wait', async () => {
    const { gateway, backend, key } = await startSystem({
      store,
      // Over a thousand requests at once on two cores: the deadline is not what is tested here.
      config: { store: { timeout_ms: 10_000 } },
    });
    const read = () => fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
    const answers = await Promise.all(Array.from({ length: 1100 }, () => read()));
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1000);
    expect(refused).toHaveLength(100);
    expect(backend.seen).toHaveLength(1000);
    const [first] = refused;
    const problem = await first?.json();
    const retryAfter = Number(first?.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(3500);
    expect(retryAfter).toBeLessThan(3625);
    expect(first?.headers.get('content-type')).toBe('application/problem+json');
    expect(first?.headers.get('ratelimit')).toBe(`"hourly";r=0;t=${retryAfter}`);
    expect(first?.headers.get('ratelimit-policy')).toBe('"hourly";q=1000;w=3600');
    expect(problem).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      status: 429,
      code: 'quota_exceeded',
      'violated-policies': ['hourly'],
    });
  });
});
