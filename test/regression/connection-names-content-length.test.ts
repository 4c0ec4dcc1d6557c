/**
 * A backend whose Connection header names Content-Length made the gateway send a response without a length on a connection
 * that it kept: the client waited for more, or took the next response for the rest of this one.
 */
import { expect, test } from 'vitest';
import { call, headerValues } from '../upstream/support/caller.ts';
import { startGateway } from '../upstream/support/gateway.ts';
import { startRawUpstream } from '../upstream/support/upstreams.ts';

test.each([
  'Connection: content-length',
  'Connection: close, Content-Length',
  'Connection: x\r\nConnection: CONTENT-LENGTH',
])('a response keeps its one Content-Length, whatever the backend says: %j', async (connection) => {
  const upstream = await startRawUpstream((socket) =>
    socket.write(`HTTP/1.1 200 OK\r\n${connection}\r\nContent-Length: 2\r\nX: 1\r\n\r\nok`, 'latin1'),
  );
  const gateway = await startGateway(upstream.port);
  const answer = await call(gateway.port);
  expect(answer.status).toBe(200);
  expect(headerValues(answer, 'content-length')).toEqual(['2']);
  expect(answer.content.toString()).toBe('ok');
});
