import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CustomerShares } from '../../src/upstream/http1/customer-shares.ts';
import type { ConnectionRequest } from '../../src/upstream/http1/request-queue.ts';
import { TestRequest } from './support/test-request.ts';

function openShares({ maxConnections = 8, maxConnectionsPerCustomer = 2, maxWaitingPerCustomer = 3 } = {}) {
  const shares = new CustomerShares({
    maxConnections,
    maxConnectionsPerCustomer,
    maxWaitingPerCustomer: () => maxWaitingPerCustomer,
  });
  return {
    shares,
    claim(customer: string, isForced = false, isKeyless = false) {
      const member = new TestRequest(customer, isKeyless);
      return { member, result: shares.claim(member, isForced) };
    },
    release(member: ConnectionRequest): ConnectionRequest | undefined {
      const { share } = member;
      if (share === undefined) throw new Error('it holds no claim');
      member.share = undefined;
      return shares.release(share);
    },
  };
}

test('a customer claims its share, and more while fewer than half of the connections are claimed', () => {
  const { claim } = openShares();
  const results = (customer: string, count: number) => Array.from({ length: count }, () => claim(customer).result);
  expect(results('greedy', 6)).toEqual(['claimed', 'claimed', 'claimed', 'claimed', 'waiting', 'waiting']);
  expect(results('other', 3)).toEqual(['claimed', 'claimed', 'waiting']);
  expect(results('third', 2)).toEqual(['claimed', 'claimed']);
});

test('a share of all connections switches shares off', () => {
  const { claim } = openShares({ maxConnectionsPerCustomer: 8 });
  for (let i = 0; i < 20; i++) expect(claim('greedy').result).toBe('claimed');
});

test('above maxWaitingPerCustomer a request is refused; a forced one never is', () => {
  const { claim } = openShares();
  for (let i = 0; i < 4 + 3; i++) claim('greedy');
  expect(claim('greedy').result).toBe('refused');
  expect(claim('greedy', true).result).toBe('claimed');
});

test('customers take turns for released claims', () => {
  const { claim, release } = openShares({ maxConnectionsPerCustomer: 1 });
  const held = Array.from({ length: 4 }, () => claim('a').member);
  claim('b');
  const waiting = [claim('a').member, claim('a').member, claim('b').member];
  expect(held.map((each) => release(each))).toEqual([undefined, waiting[0], waiting[2], waiting[1]]);
});

test('requests without a key claim a quarter of the connections, those of one address a quarter of that, and never wait', () => {
  const { shares, claim, release } = openShares({ maxConnections: 35, maxConnectionsPerCustomer: 35 });
  const keyless = (address: string, isForced = false) => claim(address, isForced, true);
  const granted = ['/a', '/a', '/b', '/b', '/c', '/c', '/d'].map((address) => keyless(address));
  expect(granted.map(({ result }) => result)).toEqual(Array(7).fill('claimed'));
  // A retry on a new connection is no exception.
  expect([keyless('/a').result, keyless('/a', true).result]).toEqual(['refused', 'refused']);
  expect(keyless('/e').result).toBe('claimed');
  expect(keyless('/f').result).toBe('refused');
  for (let i = 0; i < 30; i++) expect(claim('customer').result).toBe('claimed');
  for (const { member } of granted.slice(0, 2)) release(member);
  expect([keyless('/f').result, keyless('/a').result, keyless('/a').result]).toEqual(['claimed', 'claimed', 'refused']);
  expect(shares.waitingCount).toBe(0);
});

test.each([1, 2, 4, 7])('of %i connections, requests without a key claim one', (maxConnections) => {
  const { claim } = openShares({ maxConnections });
  const results = ['/a', '/a', '/b'].map((address) => claim(address, false, true).result);
  expect(results).toEqual(['claimed', 'refused', 'refused']);
});

test('after any claims, releases and withdrawals, requests wait only if they must, and each customer is served in order', () => {
  const STEP = fc.record({
    action: fc.constantFrom('claim', 'claim', 'force', 'release', 'withdraw'),
    customer: fc.constantFrom('a', 'b', 'c'),
    at: fc.nat({ max: 20 }),
  });
  const OPTIONS = fc.record({
    maxConnections: fc.integer({ min: 5, max: 9 }),
    maxConnectionsPerCustomer: fc.integer({ min: 1, max: 4 }),
    maxWaitingPerCustomer: fc.integer({ min: 0, max: 4 }),
  });
  fc.assert(
    fc.property(OPTIONS, fc.array(STEP, { maxLength: 80 }), (options, steps) => {
      const { shares, claim, release } = openShares(options);
      let holding: ConnectionRequest[] = [];
      let waiting: ConnectionRequest[] = [];
      const of = (customer: string, members: ConnectionRequest[]) =>
        members.filter((each) => each.customer === customer);
      for (const { action, customer, at } of steps) {
        if (action === 'claim' || action === 'force') {
          const { member, result } = claim(customer, action === 'force');
          if (result === 'claimed') holding.push(member);
          if (result === 'waiting') waiting.push(member);
          if (result === 'refused') expect(of(customer, waiting)).toHaveLength(options.maxWaitingPerCustomer);
        } else if (action === 'release') {
          const member = holding[at % Math.max(1, holding.length)];
          if (member === undefined) continue;
          holding = holding.filter((each) => each !== member);
          const next = release(member);
          if (next === undefined) continue;
          expect(next).toBe(of(next.customer, waiting)[0]);
          waiting = waiting.filter((each) => each !== next);
          holding.push(next);
        } else {
          const member = waiting[at % Math.max(1, waiting.length)];
          if (member === undefined) continue;
          shares.withdraw(member);
          waiting = waiting.filter((each) => each !== member);
        }
        shares.sweep(0);
        expect(shares.waitingCount).toBe(waiting.length);
        for (const each of waiting) {
          expect(shares.isWaiting(each)).toBe(true);
          expect(of(each.customer, holding).length).toBeGreaterThanOrEqual(options.maxConnectionsPerCustomer);
          expect(holding.length).toBeGreaterThanOrEqual(Math.floor(options.maxConnections / 2));
        }
      }
    }),
  );
});
