import express, { type Express } from 'express';

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
