import type { RequestHandler } from 'express';
import { answerProblem } from '../problems/answer.ts';

/** Returns the last handler of a route: responds with 405 and the allowed methods (RFC 9110 §15.5.6). */
export function allowOnly(...methods: string[]): RequestHandler {
  const allow = methods.join(', ');
  return (_req, res) => {
    answerProblem(res, { code: 'method_not_allowed', detail: `This path has ${allow}.`, headers: ['Allow', allow] });
  };
}
