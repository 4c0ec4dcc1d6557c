import type { ErrorRequestHandler } from 'express';
import { type Problem, sendProblem } from '../../http/problems/document.ts';
import type { Logger } from '../../observability/logger.ts';
import { DamagedRecordError, InvalidCursorError, StoreDoubtError, StoreUnavailableError } from '../../store/errors.ts';
import { Refusal } from './refusal.ts';
import { factsOf } from './response-locals.ts';

interface Recipients {
  /** Whether problem documents may say what is wrong with the store. */
  readonly isForOperators: boolean;
}

/** Turns every error into a problem document. Logs only bugs and an unavailable store. */
export function createErrorHandler(logger: Logger, recipients: Recipients): ErrorRequestHandler {
  return (error, req, res, _next) => {
    if (res.headersSent) {
      res.destroy();
      logger.error({ err: error }, 'a response failed after its headers were sent');
      return;
    }
    const problem = problemOf(error, req.method, recipients);
    const requestId = sendProblem(res, problem);
    const facts = { err: error, request_id: requestId, method: req.method };
    if (problem.code === 'internal_error') logger.error(facts, 'request of the admin API or the portal failed');
    if (problem.code === 'store_unavailable') {
      // The change may have been made all the same, but without an audit entry.
      const { clientAddress, actor } = factsOf(res);
      logger.warn(
        { ...facts, client: clientAddress, actor: actor?.name },
        'request of the admin API or the portal failed: the store is unavailable',
      );
    }
  };
}

const DOUBT_DETAILS: Readonly<Record<StoreDoubtError['doubt'], string>> = {
  wiped: 'The store lost its data: restore it, or accept its content as complete with "tollgate store init".',
  empty: 'The store has no customers yet: create the first customer and key, or restore the data if it was lost.',
  evicted: 'The store evicted keys: restore them, or accept its content as complete with "tollgate store init".',
};

function problemOf(error: unknown, method: string, { isForOperators }: Recipients): Problem {
  if (error instanceof Refusal) return error.problem;
  if (error instanceof InvalidCursorError) {
    return { code: 'unprocessable', detail: 'cursor: must be the next_cursor of an earlier response' };
  }
  if (isForOperators && error instanceof StoreDoubtError) {
    return storeUnavailable(DOUBT_DETAILS[error.doubt]);
  }
  if (isForOperators && error instanceof DamagedRecordError) {
    return storeUnavailable(
      'The record in the store is damaged. The log names it, and "tollgate store check" says what to do.',
    );
  }
  if (error instanceof StoreUnavailableError) {
    const isRead = method === 'GET' || method === 'HEAD';
    const doubt = isRead ? '.' : '; it is unknown whether a change was made.';
    return storeUnavailable(`The store does not respond${doubt}`);
  }
  // Express's router gives a path that it cannot decode a status.
  if (error instanceof URIError && 'status' in error) {
    return { code: 'not_found', detail: 'The path has an encoding that cannot be decoded.' };
  }
  return { code: 'internal_error', detail: 'The gateway failed. The log has the request_id.' };
}

function storeUnavailable(detail: string): Problem {
  return { code: 'store_unavailable', detail, headers: ['Retry-After', '1'] };
}
