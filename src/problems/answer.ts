import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { type Problem, problemBody, problemHeaders, problemStatus } from './document.ts';

/** Sends a problem document as the complete response, without the body for HEAD. Returns the request id in it. */
export function answerProblem(res: ServerResponse, problem: Problem, requestId: string = randomUUID()): string {
  const body = problemBody(problem, requestId);
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  res.writeHead(problemStatus(problem.code), ['X-Request-Id', requestId, ...problemHeaders(problem, body)]);
  res.end(res.req.method === 'HEAD' ? undefined : body);
  return requestId;
}
