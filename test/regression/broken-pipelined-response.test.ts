/**
 * When the backend broke off the second of two pipelined responses, the gateway reset the connection. A reset discards what
 * the kernel has not delivered yet, so a client that read late lost the complete first response as well (30 of 30).
 */
import { expect, it } from 'vitest';
import { openSession, request } from '../limits/support.ts';
import { startSystem } from '../support/system.ts';

const COUNT = 30;
const KIB = 1024;

it('a complete response before a truncated one arrives whole, and the truncation is recognizable', async () => {
  const { gateway, key } = await startSystem({
    config: { upstream: { max_connections: 6 * COUNT } },
    answer(req, res) {
      const [kind, size] = req.url?.split('/').at(-1)?.split('-') ?? [];
      res.setHeader('Content-Length', Number(size));
      if (kind === 'whole') res.end('#'.repeat(Number(size)));
      else res.write('%%%%', () => res.destroy());
    },
  });
  const sizes = Array.from({ length: COUNT }, (_, i) => (100 + 10 * i) * KIB);
  const sessions = await Promise.all(
    sizes.map(async (size) => {
      const session = await openSession(gateway.public);
      session.socket.pause();
      session.send(
        request(key, `/v1/conversations/whole-${size}`) +
          request(key, '/v1/conversations/broken-100') +
          request(key, '/v1/conversations/whole-10'),
      );
      return session;
    }),
  );
  await expect.poll(() => gateway.logs.filter(({ msg }) => msg === 'upstream failed').length).toBe(COUNT);
  for (const { socket } of sessions) socket.resume();
  await Promise.all(sessions.map(({ closed }) => closed));
  expect(sessions.map(({ received }) => received().match(/#/g)?.length)).toEqual(sizes);
  expect(sessions.filter(({ received }) => (received().match(/%/g)?.length ?? 0) >= 100)).toEqual([]);
});
