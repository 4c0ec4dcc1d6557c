import { expect, test } from 'vitest';
import { Ejection } from '../../src/upstream/health/ejection.ts';
import { HeldTime } from './support/held-time.ts';

function watched({ canBeSpared = true, hasNoConnection = true } = {}) {
  const time = new HeldTime();
  const seen = { probes: 0, changes: 0, canBeSpared, hasNoConnection };
  const ejection = new Ejection({
    scheduler: time,
    canBeSpared: () => seen.canBeSpared,
    hasNoConnection: () => seen.hasNoConnection,
    probe: () => {
      seen.probes++;
    },
    changed: () => {
      seen.changes++;
    },
  });
  return { time, seen, ejection };
}

function repeat(times: number, action: () => void): void {
  for (let i = 0; i < times; i++) action();
}

test('five failed requests in a row eject an upstream, and a success between them restarts the count', () => {
  const { ejection } = watched();
  repeat(4, () => ejection.failed());
  ejection.succeeded();
  repeat(4, () => ejection.failed());
  expect(ejection.reason).toBeUndefined();
  ejection.failed();
  expect(ejection.reason).toBe('failing');
});

test('failed requests never take out one that the others cannot do without, however many', () => {
  const { ejection, seen } = watched({ canBeSpared: false });
  repeat(50, () => ejection.failed());
  expect(ejection.reason).toBeUndefined();
  seen.canBeSpared = true;
  ejection.failed();
  expect(ejection.reason).toBe('failing');
});

test('three failed connections in a row eject even the last upstream while none is open', () => {
  const { ejection } = watched({ canBeSpared: false });
  repeat(2, () => ejection.connectFailed());
  ejection.connected();
  repeat(2, () => ejection.connectFailed());
  expect(ejection.reason).toBeUndefined();
  ejection.connectFailed();
  expect(ejection.reason).toBe('unreachable');
});

test('while a connection is open, failed ones eject only an upstream that can be spared', () => {
  const last = watched({ canBeSpared: false, hasNoConnection: false });
  repeat(10, () => last.ejection.connectFailed());
  expect(last.ejection.reason).toBeUndefined();
  const spare = watched({ canBeSpared: true, hasNoConnection: false });
  repeat(3, () => spare.ejection.connectFailed());
  expect(spare.ejection.reason).toBe('failing');
});

test('an unreachable one is probed after 250 ms, then after twice as long each time, and at least every 5 s', () => {
  const { ejection, seen, time } = watched();
  repeat(3, () => ejection.connectFailed());
  for (const delayMs of [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]) {
    const before = seen.probes;
    time.advance(delayMs - 1);
    expect(seen.probes).toBe(before);
    time.advance(1);
    expect(seen.probes).toBe(before + 1);
    ejection.connectFailed();
    ejection.connectFailed(); // one that somebody else had waited for
  }
  ejection.connected();
  expect([ejection.reason, seen.changes]).toEqual([undefined, 2]);
  time.advance(60_000);
  expect(seen.probes).toBe(7);
});

test('a failing upstream stays ejected for 5 s, whatever connections do meanwhile, and returns once a probe connects', () => {
  const { ejection, seen, time } = watched();
  repeat(5, () => ejection.failed());
  time.advance(4_999);
  ejection.connected();
  ejection.succeeded();
  expect([ejection.reason, seen.probes]).toEqual(['failing', 0]);
  time.advance(1);
  expect([ejection.reason, seen.probes]).toEqual(['failing', 1]);
  ejection.connected();
  expect(ejection.reason).toBeUndefined();
});

test('back from there one failure is enough, for twice the time each time, up to five minutes', () => {
  const { ejection, seen, time } = watched();
  repeat(4, () => ejection.failed());
  for (const delayMs of [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]) {
    ejection.failed();
    const before = seen.probes;
    time.advance(delayMs - 1);
    expect(seen.probes).toBe(before);
    time.advance(1);
    expect(seen.probes).toBe(before + 1);
    ejection.connected();
    expect(ejection.reason).toBeUndefined();
  }
});

test('five successful responses in a row end the probation', () => {
  const { ejection, seen, time } = watched();
  repeat(5, () => ejection.failed());
  time.advance(5_000);
  ejection.connected();
  repeat(5, () => ejection.succeeded());
  repeat(4, () => ejection.failed());
  expect(ejection.reason).toBeUndefined();
  ejection.failed();
  time.advance(5_000);
  expect(seen.probes).toBe(2);
});

test('a failure between them begins the five anew', () => {
  const { ejection, seen, time } = watched();
  repeat(5, () => ejection.failed());
  time.advance(5_000);
  ejection.connected();
  repeat(4, () => ejection.succeeded());
  ejection.failed();
  repeat(4, () => ejection.succeeded());
  repeat(5, () => ejection.failed());
  time.advance(9_999);
  expect(seen.probes).toBe(1);
  time.advance(1);
  expect(seen.probes).toBe(2);
});

test('time out of reach does not count as failing', () => {
  const { ejection, seen, time } = watched();
  repeat(3, () => ejection.connectFailed());
  repeat(20, () => {
    time.advance(5_000);
    ejection.connectFailed();
  });
  ejection.connected();
  time.advance(5_000);
  const before = seen.probes;
  ejection.failed();
  expect(ejection.reason).toBe('failing');
  time.advance(5_000);
  expect(seen.probes).toBe(before + 1);
});

test('closed, it probes no more', () => {
  const { ejection, seen, time } = watched();
  repeat(3, () => ejection.connectFailed());
  ejection.close();
  time.advance(60_000);
  expect(seen.probes).toBe(0);
});
