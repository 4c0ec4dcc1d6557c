import type { RequestHandler } from 'express';
import { sendProblem } from '../problems/document.ts';

/** Returns the last handler of a route: responds with 405 and the allowed methods (RFC 9110 §15.5.6). */
export function allowOnly(...methods: string[]): RequestHandler {
  const allow = methods.join(', ');
  return (_req, res) => {
    sendProblem(res, { code: 'method_not_allowed', detail: `This path has ${allow}.`, headers: ['Allow', allow] });
  };
}
