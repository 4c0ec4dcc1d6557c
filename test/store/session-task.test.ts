import { expect, onTestFinished, test } from 'vitest';
import { SessionTask } from '../../src/store/redis/connection/session-task.ts';

/** A task whose session and whose attempts the test holds in its hands. */
function heldTask(firstSession: string | undefined) {
  const attempts: { succeed(): void; fail(): void }[] = [];
  const events: string[] = [];
  const held = { session: firstSession };
  const task = new SessionTask({
    session: () => held.session,
    work: () => new Promise((resolve, reject) => attempts.push({ succeed: resolve, fail: () => reject(new Error()) })),
    onDone: () => events.push('done'),
    onUndone: () => events.push('undone'),
    onFailure: () => events.push('failed'),
  });
  onTestFinished(() => task.close());
  return { task, attempts, events, held };
}

test('nothing is begun while there is no session, and one attempt at a time when there is', () => {
  const { task, attempts, held } = heldTask(undefined);
  task.startIfDue();
  expect(attempts).toHaveLength(0);
  held.session = '1';
  task.startIfDue();
  task.startIfDue();
  expect(attempts).toHaveLength(1);
});

test('what was done for one session is undone by the next, and done again', async () => {
  const { task, attempts, events, held } = heldTask('1');
  task.startIfDue();
  attempts[0]?.succeed();
  await task.settled();
  expect(task.done).toBe(true);

  held.session = '2';
  expect(task.done).toBe(false);
  task.startIfDue();
  expect(events).toEqual(['done', 'undone']);
  attempts[1]?.succeed();
  await task.settled();
  expect(events).toEqual(['done', 'undone', 'done']);
});

test('an attempt that outlived its session counts for nothing, and the next one begins at once', async () => {
  const { task, attempts, events, held } = heldTask('1');
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

test('a failed attempt is repeated later, and not at every occasion before', async () => {
  const { task, attempts, events } = heldTask('1');
  task.startIfDue();
  attempts[0]?.fail();
  await task.settled();
  task.startIfDue();
  expect(attempts).toHaveLength(1);
  expect(events).toEqual(['failed']);
  await expect.poll(() => attempts, { timeout: 5000 }).toHaveLength(2);
});
