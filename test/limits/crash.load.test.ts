import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { KEY, startGatewayProcess } from '../support/gateway-process.ts';

/** A bug outside of any request: nothing catches it, and the process ends. */
const BUG = "process.once('SIGUSR2', () => { throw new Error('a bug of the tests'); });";

it('a process that crashes on a bug logs it, without the keys of requests in progress', async () => {
  const gateway = await startGatewayProcess({
    answer: () => {},
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(BUG)}` },
    config: { logging: { access: 'all', level: 'trace' } },
  });
  const { hostname, port } = new URL(gateway.public);
  const request = `GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${KEY}\r\n`;
  // One with the backend, one that is half sent, one that cannot be parsed.
  for (const bytes of [`${request}\r\n`, request, `${request}\0${KEY}\r\n\r\n`]) {
    const socket = connect(Number(port), hostname);
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {}).resume();
    socket.write(bytes);
  }
  await expect.poll(() => gateway.backend.seen.length).toBe(1);
  await expect.poll(() => gateway.output()).toContain('bad_request');
  gateway.signal('SIGUSR2');
  const { status, stdout, stderr } = await gateway.finished;
  expect(status).not.toBe(0);
  // What it says before it serves is for a try-out, and shows the keys that the file has.
  const said = stdout.slice(stdout.indexOf('"tollgate started"')) + stderr;
  expect(said).toContain('a bug of the tests');
  expect(said).not.toContain(KEY);
  expect(JSON.stringify(gateway.backend.seen)).not.toContain(KEY);
});
