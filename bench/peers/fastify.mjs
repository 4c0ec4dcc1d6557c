/** A gateway on Fastify with its plugins: key looked up in Redis, quota by @fastify/rate-limit, proxy on undici. */
import httpProxy from '@fastify/http-proxy';
import rateLimit from '@fastify/rate-limit';
import fastify from 'fastify';
import { Redis } from 'ioredis';

const [port, upstreamPort, redisPort, limit = 1_000_000_000, connections = 64] = process.argv.slice(2).map(Number);
const redis = new Redis(redisPort, '127.0.0.1', { enableAutoPipelining: true });

const app = fastify();
await app.register(rateLimit, {
  max: limit,
  timeWindow: 3_600_000,
  redis,
  keyGenerator: (request) => request.headers.authorization,
});
app.addHook('onRequest', async (request, reply) => {
  const authorization = request.headers.authorization;
  if (!authorization?.startsWith('Bearer ')) return reply.code(401).send();
  const [customer] = await redis.hmget(`k:${authorization.slice(7)}`, 'cust', 'limit');
  if (customer === null) return reply.code(401).send();
});
app.register(httpProxy, {
  upstream: `http://127.0.0.1:${upstreamPort}`,
  undici: { connections, pipelining: 1 },
});
await app.listen({ port, host: '127.0.0.1' });
