/** What `npm start` runs. Plain JavaScript, for the check of the Node.js version. */
import '../bin/prepare-node.js';

await import('./quick-start.ts');
