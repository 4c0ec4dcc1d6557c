import { isIP } from 'node:net';
import { hostOf } from './host.ts';

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Accepts `https://…` and `http://…`, without credentials; with a fragment only if allowed. */
export function isHttpUrl(text: string, { allowFragment = false } = {}): boolean {
  const url = /^https?:\/\/[^\s\\]+$/i.test(text) && (allowFragment || !text.includes('#')) ? URL.parse(text) : null;
  return url !== null && url.username === '' && url.password === '';
}

/** Like {@link isHttpUrl}, but `http://…` only to a loopback host. */
export function isTrustworthyUrl(text: string, options?: { readonly allowFragment?: boolean }): boolean {
  return isHttpUrl(text, options) && (/^https:/i.test(text) || isLoopback(hostOf(new URL(text))));
}
