/**
 * A gateway on Express and http-proxy-middleware as one would write it in a day: key looked up in Redis, quota by
 * rate-limiter-flexible, and the proxy with its defaults but for an agent that keeps connections to the backend.
 */
import { Agent } from 'node:http';
import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';

const [port, upstreamPort, redisPort, points = 1_000_000_000] = process.argv.slice(2).map(Number);
const redis = new Redis(redisPort, '127.0.0.1', { enableAutoPipelining: true });
const quota = new RateLimiterRedis({ storeClient: redis, keyPrefix: 'quota', points, duration: 3600 });

async function authenticate(request, response, next) {
  const [, key] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
  if (key === undefined) return response.status(401).json({ error: 'API key required' });
  const customer = await redis.hget(`k:${key}`, 'cust');
  if (customer === null) return response.status(401).json({ error: 'unknown API key' });
  request.customer = customer;
  next();
}

async function limit(request, response, next) {
  try {
    const { remainingPoints } = await quota.consume(request.customer);
    response.set('X-RateLimit-Remaining', String(remainingPoints));
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    response.set('Retry-After', String(Math.ceil(refusal.msBeforeNext / 1000)));
    return response.status(429).json({ error: 'quota exceeded' });
  }
  next();
}

express()
  .disable('x-powered-by')
  .use(authenticate)
  .use(limit)
  .use(
    createProxyMiddleware({
      target: `http://127.0.0.1:${upstreamPort}`,
      changeOrigin: true,
      agent: new Agent({ keepAlive: true }),
    }),
  )
  .listen(port, '127.0.0.1');
