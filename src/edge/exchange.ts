import type { Request, Response } from 'express';
import { type Problem, problemResponse } from '../problems/document.ts';
import type { QuotaMode } from '../quota/hourly-quota.ts';
import type { Client } from './client-address.ts';
import type { PublicSettings } from './settings.ts';

/** The state of one request in the gateway: what its response, metrics and log line need. */
export interface Exchange {
  readonly req: Request;
  readonly res: Response;
  /** The settings that were current when the request arrived. */
  readonly settings: PublicSettings;
  readonly requestId: string;
  /** Monotonic ms. */
  readonly startedAtMs: number;
  readonly client: Client;
  /** The matched route's template, or `none`. */
  route: string;
  /** A configured name. `none` before the customer is known, `unknown` if the config lacks the customer's plan. */
  plan: string;
  customer?: string;
  keyId?: string;
  /** The end of the request is recorded: it no longer counts as in flight. */
  isRecorded?: true;
  /** Ends the count against the plan's `max_concurrent`. Undefined if the plan has none, or the quota was not decided. */
  release?: (() => void) | undefined;
  /** How the hourly quota was decided; undefined if it was not. */
  quota?: QuotaMode;
  /** The plan's shadow limit, which is tried out but not enforced, would have refused the request. */
  shadow?: 'denied';
}

/** Sends a problem document as the complete response (RFC 9457); to HEAD, only its headers. */
export function sendProblem(exchange: Exchange, problem: Problem): void {
  const { res, requestId, settings } = exchange;
  const { status, headers, body } = problemResponse(problem, requestId, settings.documentationUrl);
  res.writeHead(status, headers);
  setImmediate(end, exchange, body);
}

/** Sends a JSON document as the complete response. It is about one customer, so caches must not store it. */
export function sendJson(exchange: Exchange, document: object): void {
  const { res, requestId } = exchange;
  const body = JSON.stringify(document);
  res.writeHead(200, [
    'X-Request-Id',
    requestId,
    'Content-Type',
    'application/json',
    'Content-Length',
    String(Buffer.byteLength(body)),
    'Cache-Control',
    'no-store',
  ]);
  setImmediate(end, exchange, body);
}

/** Called at the end of the event loop turn, for all responses of that turn: clients are woken up less often. */
function end({ req, res }: Exchange, body: string): void {
  res.end(req.method === 'HEAD' ? undefined : body);
}
