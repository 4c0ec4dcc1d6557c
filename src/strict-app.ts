import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import express, { type Express } from 'express';
import { answerProblem } from './problems/answer.ts';

/**
 * An Express application without the defaults that guess: it says nothing of itself, computes no ETags, leaves queries
 * alone, and tells paths apart by case and trailing slash.
 */
export function createStrictApp(): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.enable('case sensitive routing');
  app.enable('strict routing');
  return app;
}

/**
 * For `createServer`; asks for the application at each request. A target that is no URL never gets as far as a handler:
 * Express has a page of its own for it.
 */
export function listenerOf(app: () => Express): RequestListener {
  return (req, res) => {
    if (URL.canParse(req.url ?? '', 'http://listener')) app()(req, res);
    else answerProblem(res, { code: 'bad_request', detail: 'The target of this request is neither a path nor a URL.' });
  };
}

/**
 * Classes whose objects are Express's requests and answers from the start, for `createServer`. Express changes the
 * prototype of each object otherwise, and everything that touches such an object afterwards is slower for it.
 */
export function messageClasses(app: Express) {
  class AppRequest extends IncomingMessage {}
  class AppResponse<Request extends IncomingMessage> extends ServerResponse<Request> {}
  Object.setPrototypeOf(AppRequest.prototype, app.request);
  Object.setPrototypeOf(AppResponse.prototype, app.response);
  app.request = AppRequest.prototype as typeof app.request;
  app.response = AppResponse.prototype as unknown as typeof app.response;
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse };
}
