import type { RequestHandler } from 'express';
import { answerProblem } from '../problems/answer.ts';

/** The end of a route: 405 with what the path can do (RFC 9110 §15.5.6). */
export function allowOnly(...methods: string[]): RequestHandler {
  const allow = methods.join(', ');
  return (_req, res) => {
    answerProblem(res, { code: 'method_not_allowed', detail: `This path has ${allow}.`, headers: ['Allow', allow] });
  };
}
