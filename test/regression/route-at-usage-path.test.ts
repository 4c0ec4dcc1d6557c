/** A backend with a route at /api/v1/usage got no request for it: without a word, the gateway served its own usage there. */
import { describe, expect, it } from 'vitest';
import { load, MINIMAL, problemsOf } from '../config/support.ts';

const USAGE = '/api/v1/usage';
const file = (path: string, more = '') =>
  `${MINIMAL}routes: [{ path: /api/v1/a, methods: [GET] }, { path: ${path}, methods: [GET] }]\n${more}`;

describe('a route at a path that the gateway itself serves', () => {
  it.each([USAGE, `${USAGE}/history`])(
    '%s, by the default of usage_path, is refused with the way out',
    async (path) => {
      expect(await problemsOf(file(path))).toEqual([
        'gateway.yaml:3: routes[1].path: is served by the gateway itself, by the default of usage_path; set usage_path to another path, or to null',
      ]);
    },
  );

  it('set in the file is refused at that setting', async () => {
    expect(await problemsOf(file('/mine', 'usage_path: /mine'))).toEqual([
      'gateway.yaml:4: usage_path: is the path of routes[1] too; choose another',
    ]);
  });

  it.each(['usage_path: /elsewhere', 'usage_path: null'])('is forwarded with %s', async (setting) => {
    expect((await load(file(USAGE, setting))).routes[1]?.path).toBe(USAGE);
  });
});
