/** The ops listener: for probes and Prometheus. It is open to whoever reaches it, so nothing here is secret or writes. */
import type { ErrorRequestHandler, Express, Request, Response } from 'express';
import type { Logger } from '../observability/logger.ts';
import { answerProblem } from '../problems/answer.ts';
import { createStrictApp } from '../strict-app.ts';
import type { Readiness } from './readiness.ts';

export interface OpsAppParts {
  readonly metrics: { text(): Promise<string>; readonly contentType: string };
  readiness(): Readiness;
  readonly logger: Logger;
}

const READ_METHODS = 'GET, HEAD';

export function createOpsApp({ metrics, readiness, logger }: OpsAppParts): Express {
  const app = createStrictApp();

  app
    .route('/metrics')
    .get(async (_req, res) => send(res, 200, metrics.contentType, await metrics.text()))
    .all(refuseMethod);

  // The process only: a restart mends neither the store nor the backend.
  app
    .route('/livez')
    .get((_req, res) => sendJson(res, 200, { status: 'live' }))
    .all(refuseMethod);

  app
    .route('/readyz')
    .get((_req, res) => {
      const state = readiness();
      sendJson(res, state.status === 'not_ready' ? 503 : 200, state);
    })
    .all(refuseMethod);

  app.use((_req, res) => {
    answerProblem(res, { code: 'not_found', detail: 'This listener has /metrics, /livez and /readyz.' });
  });

  const handleBug: ErrorRequestHandler = (error, _req, res, _next) => {
    if (res.headersSent) res.destroy();
    const problem = { code: 'internal_error', detail: 'The gateway failed. The log says more.' } as const;
    const requestId = res.headersSent ? undefined : answerProblem(res, problem);
    logger.error({ err: error, request_id: requestId }, 'ops request failed');
  };
  app.use(handleBug);
  return app;
}

function refuseMethod(_req: Request, res: Response): void {
  answerProblem(res, {
    code: 'method_not_allowed',
    detail: `This path can be read with ${READ_METHODS}.`,
    headers: ['Allow', READ_METHODS],
  });
}

function sendJson(res: Response, status: number, body: unknown): void {
  send(res, status, 'application/json', `${JSON.stringify(body)}\n`);
}

function send(res: Response, status: number, contentType: string, body: string): void {
  res.writeHead(status, {
    'Content-Type': contentType,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
  });
  res.end(body);
}
