import { isIP } from 'node:net';
import { hostOf } from './host-name.ts';

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Accepts `https://…`, or `http://…` to a loopback host; without credentials, and a fragment only if allowed. */
export function isTrustworthyUrl(text: string, { allowFragment = false } = {}): boolean {
  const url = /^https?:\/\/[^\s\\]+$/i.test(text) && (allowFragment || !text.includes('#')) ? URL.parse(text) : null;
  if (url === null || url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || isLoopback(hostOf(url));
}
