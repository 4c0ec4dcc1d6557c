/**
 * The admin listener, in order: no caching, the token, then the body and the calls. Nothing of a request is parsed
 * before its sender is known to be an administrator.
 */
import express, { type Express } from 'express';
import type { Clock } from '../clock.ts';
import type { Logger } from '../observability/logger.ts';
import type { EffectiveLimit } from '../quota/limit.ts';
import type { Usage } from '../quota/usage.ts';
import type { CustomerRecord, RecordStore } from '../store/store.ts';
import { requireToken } from './authorize.ts';
import { customerRoutes } from './customers.ts';
import { createErrorHandler } from './error-handler.ts';
import { jsonBody } from './json-body.ts';
import { keyRoutes } from './keys.ts';
import { Refusal } from './refusal.ts';
import { type GatewayStatus, statusRoute } from './status.ts';

export interface AdminParts {
  /** Undefined or empty: nobody gets in. */
  readonly token?: string | undefined;
  readonly records: RecordStore;
  effectiveLimit(customer: CustomerRecord): EffectiveLimit;
  /** Rejects with StoreUnavailableError. */
  usage(customer: string, requestsPerHour: number): Promise<Usage>;
  status(): GatewayStatus;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Must be cryptographically secure: keys are made of it. */
  randomBytes(size: number): Buffer;
}

export function createAdminApp(parts: AdminParts): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.enable('case sensitive routing');
  app.enable('strict routing');

  app.use((_req, res, next) => {
    res.setHeader('Cache-Control', 'no-store');
    next();
  });
  app.use(requireToken(parts.token));
  app.use(jsonBody());
  app.use(statusRoute(() => parts.status()));
  app.use(customerRoutes(parts));
  app.use(keyRoutes(parts));
  app.use(() => {
    throw new Refusal('not_found', 'The admin API has no such path.');
  });
  app.use(createErrorHandler(parts.logger));
  return app;
}
