import type { Request, Response } from 'express';
import { type Problem, problemBody, problemHeaders, problemStatus } from '../problems/document.ts';
import type { QuotaMode } from '../quota/admission.ts';
import type { Caller } from './client-address.ts';
import type { PublicSettings } from './settings.ts';

/** One request on its way through the gateway: what became known of it, for its answer, its metrics and its log line. */
export interface Exchange {
  readonly req: Request;
  readonly res: Response;
  /** That held when the request came. */
  readonly settings: PublicSettings;
  readonly requestId: string;
  /** Monotonic ms. */
  readonly startedAt: number;
  readonly caller: Caller;
  /** The matched route's template, or `none`. */
  route: string;
  /** A configured name; `none` before the customer is known, `unknown` when the configuration lacks its plan. */
  plan: string;
  customer?: string;
  keyId?: string;
  /** Set once its end is recorded and it no longer counts as in flight. */
  isOver?: true;
  /** How the quota was decided, where it was. */
  quota?: QuotaMode;
  /** A shadow limit would have refused it. */
  shadow?: 'denied';
}

/** Writes a problem document as the whole answer (RFC 9457); a HEAD gets its header fields only. */
export function sendProblem(exchange: Exchange, problem: Problem): void {
  const { res, requestId, settings } = exchange;
  const body = problemBody(problem, requestId, settings.documentationUrl);
  res.writeHead(problemStatus(problem.code), ['X-Request-Id', requestId, ...problemHeaders(problem, body)]);
  setImmediate(end, exchange, body);
}

/** Writes a document of the gateway's own as the whole answer: it is about the caller, so nobody may keep it. */
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

/** At the end of the turn of the event loop, with all other answers of it: the fewer times callers are woken up, the better. */
function end({ req, res }: Exchange, body: string): void {
  res.end(req.method === 'HEAD' ? undefined : body);
}
