import type { Request, Response } from 'express';
import { type Problem, problemBody, problemHeaders, problemStatus } from '../problems/document.ts';
import type { Caller } from './client-address.ts';

/** One request on its way through the gateway: what became known of it, for its answer, its metrics and its log line. */
export interface Exchange {
  readonly req: Request;
  readonly res: Response;
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
  /** How the quota was decided, where it was. */
  quota?: 'admitted' | 'refused';
}

/** Writes a problem document as the whole answer (RFC 9457); a HEAD gets its header fields only. */
export function sendProblem({ req, res, requestId }: Exchange, problem: Problem): void {
  const body = problemBody(problem, requestId);
  res.writeHead(problemStatus(problem.code), ['X-Request-Id', requestId, ...problemHeaders(problem, body)]);
  res.end(req.method === 'HEAD' ? undefined : body);
}
