import { expect, it } from 'vitest';
import { isSentByBrowser } from '../../src/edge/credentials.ts';

it.each([
  ['a script on another site', { origin: 'https://shop.example', 'sec-fetch-site': 'cross-site' }, true],
  ['an older browser', { origin: 'https://shop.example' }, true],
  ['a page without an origin of its own', { origin: 'null' }, true],
  ['a page of the same site', { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }, true],
  ['an address bar', { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }, true],
  ['an empty mark', { origin: '' }, true],
  ["Node.js's fetch", { 'sec-fetch-mode': 'cors', 'user-agent': 'node' }, false],
  ['curl', { 'user-agent': 'curl/8.5.0', accept: '*/*' }, false],
  ['a referring page', { referer: 'https://shop.example/' }, false],
])('%s', (_, headers, sentByBrowser) => {
  expect(isSentByBrowser(headers)).toBe(sentByBrowser);
});
