import { expect, onTestFinished, test } from 'vitest';
import { SessionTask } from '../../src/store/redis/connection/session-task.ts';

/** A task whose session and attempts the test controls. */
function controlledTask(firstSession: string | undefined) {
  const attempts: { succeed(): void; fail(): void }[] = [];
  const events: string[] = [];
  const held = { session: firstSession };
  const task = new SessionTask({
    session: () => held.session,
    work: () => new Promise((resolve, reject) => attempts.push({ succeed: resolve, fail: () => reject(new Error()) })),
    onDone: () => events.push('done'),
    onSessionLost: () => events.push('undone'),
    onFailure: () => events.push('failed'),
  });
  onTestFinished(() => task.close());
  return { task, attempts, events, held };
}

test('without a session no attempt starts, and with one, one attempt runs at a time', () => {
  const { task, attempts, held } = controlledTask(undefined);
  task.startIfDue();
  expect(attempts).toHaveLength(0);
  held.session = '1';
  task.startIfDue();
  task.startIfDue();
  expect(attempts).toHaveLength(1);
});

test('work done for one session is repeated for the next', async () => {
  const { task, attempts, events, held } = controlledTask('1');
  task.startIfDue();
  attempts[0]?.succeed();
  await task.whenIdle();
  expect(task.done).toBe(true);

  held.session = '2';
  expect(task.done).toBe(false);
  task.startIfDue();
  expect(events).toEqual(['done', 'undone']);
  attempts[1]?.succeed();
  await task.whenIdle();
  expect(events).toEqual(['done', 'undone', 'done']);
});

test('the result of an attempt whose session ended is ignored, and the next attempt starts at once', async () => {
  const { task, attempts, events, held } = controlledTask('1');
  task.startIfDue();
  held.session = '2';
  attempts[0]?.succeed();
  await expect.poll(() => attempts).toHaveLength(2);
  held.session = '3';
  attempts[1]?.fail();
  await expect.poll(() => attempts).toHaveLength(3);
  expect(events).toEqual([]);
  expect(task.done).toBe(false);
});

test('a failed attempt is repeated after a delay, not at each earlier opportunity', async () => {
  const { task, attempts, events } = controlledTask('1');
  task.startIfDue();
  attempts[0]?.fail();
  await task.whenIdle();
  task.startIfDue();
  expect(attempts).toHaveLength(1);
  expect(events).toEqual(['failed']);
  await expect.poll(() => attempts).toHaveLength(2);
});

test('work that is asked for while it runs is run once more, and who asked does not wait for later ones', async () => {
  const { task, attempts } = controlledTask('1');
  const settled: string[] = [];
  const ask = (name: string) => void task.runAgain().then(() => settled.push(name));
  ask('first');
  ask('second');
  ask('third');
  attempts[0]?.succeed();
  await expect.poll(() => settled).toEqual(['first']);
  // One attempt for both who asked during the first, and another for who asks during that one.
  expect(attempts).toHaveLength(2);
  ask('fourth');
  attempts[1]?.succeed();
  await expect.poll(() => settled).toEqual(['first', 'second', 'third']);
  expect(attempts).toHaveLength(3);
});
