import { expect, test } from 'vitest';
import { Periodic } from '../../src/base/periodic.ts';
import { Machine } from '../../tools/simulator/machine.ts';
import { VirtualTime } from '../../tools/simulator/virtual-time.ts';

/** Each run takes 10 ms. */
function setUp(nextMs: number | 'none' = 100) {
  const time = new VirtualTime();
  const machine = new Machine({ time, rate: 1, monotonicOriginMs: 0, wallOriginMs: 0, timerLatenessMs: () => 0 });
  const begun: number[] = [];
  const ended: number[] = [];
  const periodic = new Periodic(machine, async () => {
    begun.push(time.nowMs);
    await new Promise<void>((resolve) => void machine.after(10, resolve));
    ended.push(time.nowMs);
    return nextMs === 'none' ? undefined : nextMs;
  });
  return { time, periodic, begun, ended };
}

test('the time until the next run counts from the end of the last one', async () => {
  const { time, periodic, begun } = setUp();
  periodic.start(50);
  await time.run(300);
  expect(begun).toEqual([50, 160, 270]);
});

test('a second start plans nothing, neither before a run nor during it', async () => {
  const { time, periodic, begun } = setUp();
  periodic.start(50);
  periodic.start(20);
  await time.run(55);
  periodic.start(0);
  await time.run(100);
  expect(begun).toEqual([50]);
});

test('work that plans no next run rests until it is started again', async () => {
  const { time, periodic, begun } = setUp('none');
  periodic.start(0);
  await time.run(1000);
  periodic.start(100);
  await time.run(1000);
  expect(begun).toEqual([0, 1100]);
});

test('a run on demand takes the place of the planned one, and is shared by those who ask during it', async () => {
  const { time, periodic, begun, ended } = setUp();
  periodic.start(50);
  await time.run(20);
  const asked = [periodic.run(), periodic.run()];
  await time.run(15);
  await Promise.all(asked);
  expect([begun, ended]).toEqual([[20], [30]]);
  await time.run(100);
  expect(begun).toEqual([20, 130]);
});

test('a run that must see the latest change begins after the one in progress, once for all who ask', async () => {
  const { time, periodic, begun } = setUp();
  void periodic.run();
  await time.run(5);
  const asked = [periodic.runAgain(), periodic.runAgain()];
  await time.run(20);
  await Promise.all(asked);
  expect(begun).toEqual([0, 10]);
});

test('after a close no run begins, and the close resolves with the end of the run in progress', async () => {
  const { time, periodic, begun, ended } = setUp();
  void periodic.run();
  const again = periodic.runAgain();
  const closed = periodic.close().then(() => expect(ended).toEqual([10]));
  await time.run(500);
  await Promise.all([closed, again, periodic.run()]);
  periodic.start(0);
  await time.run(500);
  expect(begun).toEqual([0]);
});
