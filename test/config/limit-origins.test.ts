import { expect, it } from 'vitest';
import { load, MINIMAL } from './support.ts';

it('each limit has the line of its number as its origin', async () => {
  const { limitOrigins } = await load(`${MINIMAL}plans:
  starter:
    burst_per_second: 5
    requests_per_hour: 1000
  enterprise: { requests_per_hour: custom }
overrides:
  acme: { requests_per_hour: 7 }
  "12345":

    requests_per_hour: 8
`);
  expect([...limitOrigins.plans]).toEqual([
    ['starter', 'gateway.yaml:6'],
    ['enterprise', 'gateway.yaml:7'],
  ]);
  expect([...limitOrigins.overrides].sort()).toEqual([
    ['12345', 'gateway.yaml:12'],
    ['acme', 'gateway.yaml:9'],
  ]);
});

it('the limit of a day or month has a line of its own, also under former names of its plan', async () => {
  const { limitOrigins } = await load(`${MINIMAL}plans:
  starter:
    formerly: [basic]
    requests_per_hour: 1000
    period:
      per: month
      requests: 50000
overrides:
  acme:
    requests_per_hour: 7
    period_requests: 8
`);
  const { plans, overrides } = limitOrigins.periods;
  expect([plans.get('starter'), plans.get('basic')]).toEqual(['gateway.yaml:9', 'gateway.yaml:9']);
  expect(overrides.get('acme')).toBe('gateway.yaml:13');
});

it('a limit by an alias is known by the line of its anchor', async () => {
  const { limitOrigins } = await load(`${MINIMAL}plans:
  starter: &small
    requests_per_hour: 10
  trial: *small
`);
  expect(limitOrigins.plans.get('trial')).toBe('gateway.yaml:5');
});

it('limits that are not in the file have the default as their origin', async () => {
  const { limitOrigins } = await load(MINIMAL);
  expect(limitOrigins.plans.get('business')).toBe('default of plans.business.requests_per_hour');
  expect(limitOrigins.overrides.size).toBe(0);
});

it('moving a limit to another line is no other configuration', async () => {
  const plans = 'plans: { starter: { requests_per_hour: 5 } }\n';
  const [here, there] = [await load(MINIMAL + plans), await load(`${MINIMAL}\n\n${plans}`)];
  expect(there.limitOrigins).not.toEqual(here.limitOrigins);
  expect(there.hash).toBe(here.hash);
});
