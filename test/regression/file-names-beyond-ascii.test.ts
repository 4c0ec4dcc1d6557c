/**
 * A response with a file name in UTF-8 in Content-Disposition became 500 if Content-Length came first, as many servers
 * order them: Node.js decodes that header once more, and then refuses the characters. Names in Latin-1 arrived damaged.
 */
import { expect, test } from 'vitest';
import { call, headerValues } from '../upstream/support/caller.ts';
import { startGateway } from '../upstream/support/gateway.ts';
import { startRawUpstream } from '../upstream/support/upstreams.ts';

test.each(['Rechnung_1€.pdf', 'café.pdf'])(
  'a file name in UTF-8 reaches the client as the backend sent it: %s',
  async (name) => {
    const value = Buffer.from(`attachment; filename="${name}"`).toString('latin1');
    const upstream = await startRawUpstream((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Disposition: ${value}\r\n\r\nok`, 'latin1'),
    );
    const gateway = await startGateway(upstream.port);
    const answer = await call(gateway.port);
    expect(answer.status).toBe(200);
    expect(headerValues(answer, 'content-disposition')).toEqual([value]);
  },
);
