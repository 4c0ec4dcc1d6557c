import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import express, { type Express } from 'express';
import { sendProblem } from '../problems/document.ts';

/**
 * Creates an Express application with strict settings: no X-Powered-By, no ETags, no query parsing, and paths that
 * differ by case and trailing slash.
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
 * Returns a listener for `createServer` that calls `app` for each request, so that the application can be replaced. It
 * refuses targets that are not a URL or path, because Express would respond to them with an error page of its own.
 */
export function listenerOf(app: () => Express): RequestListener {
  return (req, res) => {
    if (URL.canParse(req.url ?? '', 'http://listener')) app()(req, res);
    else sendProblem(res, { code: 'bad_request', detail: 'The target of this request is neither a path nor a URL.' });
  };
}

/**
 * Creates request and response classes for `createServer` that have Express's prototypes from the start. Otherwise
 * Express changes the prototype of each object, which slows down every later access to it.
 */
export function messageClasses(app: Express) {
  class AppRequest extends IncomingMessage {}
  class AppResponse<Request extends IncomingMessage> extends ServerResponse<Request> {}
  // Express creates locals for each response that has none, as a hash table.
  Object.assign(AppResponse.prototype, { locals: Object.freeze({}) });
  Object.setPrototypeOf(AppRequest.prototype, app.request);
  Object.setPrototypeOf(AppResponse.prototype, app.response);
  app.request = AppRequest.prototype as typeof app.request;
  app.response = AppResponse.prototype as unknown as typeof app.response;
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse };
}
