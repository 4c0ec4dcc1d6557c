/** The options of docs/deploy.md that turn on Node.js's permission model, without the image. */
import { test } from 'vitest';
import { serveUnderPermissionModel } from './support/permission-model.ts';

test.each([2])(
  'under them, %i process(es) serve the console, previews and reloads, and export traces',
  serveUnderPermissionModel,
);
