import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { unwatchDisconnect, watchDisconnect } from '../../src/upstream/client-disconnect.ts';

test('one listener per connection notifies all of its requests that have not ended when it closes', () => {
  const socket = new Socket();
  const told: number[] = [];
  const watchers = Array.from({ length: 20 }, (_, i) => ({ onClientGone: () => void told.push(i) }));
  for (const watcher of watchers) watchDisconnect(socket, watcher);
  for (const watcher of watchers.slice(2)) unwatchDisconnect(socket, watcher);
  expect(socket.listenerCount('close')).toBe(1);
  socket.emit('close');
  expect(told).toEqual([0, 1]);
});
