import { expect, test } from 'vitest';
import { banner } from '../../demo/banner.ts';

test.each([
  ['Authorization', 'Authorization: Bearer tg_demo_starter'],
  ['authorization', 'authorization: Bearer tg_demo_starter'],
  ['X-API-Key', 'X-API-Key: tg_demo_starter'],
])('the command to try sends the key in %s', (keyHeader, header) => {
  const addresses = { public: 'http://a', ops: 'http://b', admin: 'http://c', portalLink: 'http://d', keyHeader };
  expect(banner(addresses, undefined)).toContain(`curl -i -H '${header}' 'http://a/v1/conversations?limit=2'`);
});
