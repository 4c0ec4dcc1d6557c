/** The ops listener for probes, Prometheus and the backend. Unauthenticated, so it shows no secrets and changes nothing. */
import type { ErrorRequestHandler, Express, Response } from 'express';
import { createStrictApp } from '../../http/listener/strict-app.ts';
import { sendProblem } from '../../http/problems/document.ts';
import type { Readiness } from './readiness.ts';

export interface OpsAppParts {
  /** Returns the metrics in Prometheus' text format. */
  metrics(): Promise<string>;
  readiness(): Readiness;
  /** Returns the public keys that verify assertions (JWK Set); empty if the gateway signs none. */
  publicKeys(): { readonly keys: readonly object[] };
  readonly logger: { error(members: object, message: string): void };
}

const READ_METHODS = 'GET, HEAD';
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
/** The shortest wait between the steps of a key rotation: see docs/identity.md. */
const KEYS_MAX_AGE_SECONDS = 300;

export function createOpsApp({ metrics, readiness, publicKeys, logger }: OpsAppParts): Express {
  const app = createStrictApp();

  app.get('/metrics', async (_req, res) => send(res, 200, METRICS_TYPE, await metrics()));

  // Covers only the process: a restart repairs neither the store nor the backend.
  app.get('/livez', (_req, res) => sendJson(res, 200, { status: 'live' }));

  app.get('/readyz', (_req, res) => {
    const state = readiness();
    sendJson(res, state.status === 'not_ready' ? 503 : 200, state);
  });

  // Served even without keys: an empty set correctly says that no key is valid, and the URL always works.
  app.get('/.well-known/jwks.json', (_req, res) => {
    const cacheControl = `public, max-age=${KEYS_MAX_AGE_SECONDS}`;
    send(res, 200, 'application/jwk-set+json', `${JSON.stringify(publicKeys())}\n`, cacheControl);
  });

  app.all(['/metrics', '/livez', '/readyz', '/.well-known/jwks.json'], (_req, res) => {
    sendProblem(res, {
      code: 'method_not_allowed',
      detail: `This path can be read with ${READ_METHODS}.`,
      headers: ['Allow', READ_METHODS],
    });
  });

  app.use((_req, res) => {
    const detail = 'This listener has /metrics, /livez, /readyz and /.well-known/jwks.json.';
    sendProblem(res, { code: 'not_found', detail });
  });

  const handleBug: ErrorRequestHandler = (error, _req, res, _next) => {
    if (res.headersSent) res.destroy();
    const problem = { code: 'internal_error', detail: 'The gateway failed. The log says more.' } as const;
    const requestId = res.headersSent ? undefined : sendProblem(res, problem);
    logger.error({ err: error, request_id: requestId }, 'ops request failed');
  };
  app.use(handleBug);
  return app;
}

function sendJson(res: Response, status: number, body: unknown): void {
  send(res, status, 'application/json', `${JSON.stringify(body)}\n`);
}

function send(res: Response, status: number, contentType: string, body: string, cacheControl = 'no-store'): void {
  res.writeHead(status, {
    'Content-Type': contentType,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': cacheControl,
  });
  res.end(body);
}
