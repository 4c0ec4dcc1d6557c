import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';

/** Prints the URL of every module that the program loads, on standard error. */
const SHOW_MODULES = `data:text/javascript,${encodeURIComponent(
  `import { registerHooks } from 'node:module';
   registerHooks({ load: (url, context, next) => { process.stderr.write(url + '\\n'); return next(url, context); } });`,
)}`;

it('the help loads no schema of the admin API and no code of the gateway, so that it appears at once', async () => {
  const args = ['--import', SHOW_MODULES, 'src/main.ts', 'keys', '--help'];
  const { stderr } = await promisify(execFile)(process.execPath, args, { env: CHILD_ENVIRONMENT });
  expect(stderr).toContain('/src/cli/keys.ts');
  expect(stderr).not.toMatch(/\/(zod|yaml|express|ioredis|admin-api\/re\w+\.ts)/);
});
