/**
 * The formats of single values: predicates, and parsers that return the canonical text, or undefined for an invalid
 * value.
 */
import { isIP } from 'node:net';
import { isHostName, isSocketPath } from './host.ts';

export const LOG_FORMATS = ['auto', 'json', 'pretty'] as const;

const LITERAL_SEGMENT = /^[A-Za-z0-9._~-]+$/;
const PARAMETER_SEGMENT = /^\{([A-Za-z_][A-Za-z0-9_]*)(\.\.\.)?\}$/;

/** Accepts an address to listen on: an IP address without brackets, or a host name. */
export function isListenHost(text: string): boolean {
  return isIP(text) !== 0 || isHostName(text);
}

/** Returns whether a host means every address, and so conflicts with any other host on the same port. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

function segmentsOf(path: string): string[] {
  return path.split('/').slice(1);
}

function isLiteralSegment(segment: string): boolean {
  return LITERAL_SEGMENT.test(segment) && segment !== '.' && segment !== '..';
}

/** Accepts `/v1`: absolute, literal segments only, no trailing slash. */
export function isPrefix(path: string): boolean {
  return path.startsWith('/') && segmentsOf(path).every(isLiteralSegment);
}

/**
 * Accepts `/`, and `/api/v1/things/{id}`: like a prefix, but a segment may be a parameter, and the last one `{rest...}`.
 * Parameter names are distinct.
 */
export function isRoutePath(path: string): boolean {
  if (path === '/') return true;
  if (!path.startsWith('/')) return false;
  const segments = segmentsOf(path);
  const names = new Set<string>();
  return segments.every((segment, index) => {
    const [, name, dots] = PARAMETER_SEGMENT.exec(segment) ?? [];
    if (name === undefined) return isLiteralSegment(segment);
    const isNew = !names.has(name);
    names.add(name);
    return isNew && (dots === undefined || index === segments.length - 1);
  });
}

/** Returns a route's path without the names of its parameters: equal for routes that match the same paths. */
export function routeShape(path: string): string {
  return path.replace(/\{\w+/g, '{');
}

/** Returns whether `path` equals `prefix` or is below it, compared by whole segments. */
export function isWithin(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

/** Returns whether some route is at or below `prefix`. */
export function isRoutePrefix(prefix: string, routes: readonly string[]): boolean {
  return routes.some((route) => isWithin(route, prefix));
}

/** Parses an origin such as `https://host:8443`. Returns it as the URL standard writes it, or undefined. */
export function parseOrigin(text: string): string | undefined {
  const url = URL.parse(text);
  if (!url || !/^https?:\/\/[^/?#@\\\s]+\/?$/i.test(text)) return undefined;
  return url.username === '' && url.password === '' ? url.origin : undefined;
}

/**
 * Parses an origin with an optional base path, such as `http://host` or `https://host:8443/base`. Returns the origin as
 * the URL standard writes it and the base path, without a slash at the end, or undefined. Segments of the base path
 * must be literal, so that no URL parser changes them. Also accepts `unix:/path/of/socket`.
 */
export function parseUpstreamUrl(text: string): string | undefined {
  if (text.startsWith('unix:')) return isSocketPath(text.slice('unix:'.length)) ? text : undefined;
  const [, origin = '', base = ''] = /^([a-z]+:\/\/[^/]*)(.*)$/i.exec(text) ?? [];
  const canonical = parseOrigin(origin);
  const path = base.replace(/\/$/, '');
  return canonical !== undefined && (path === '' || isPrefix(path)) ? canonical + path : undefined;
}

/** Accepts an `http(s)://…` URL for people; `{code}` may occur anywhere after the host. */
export function isDocumentationUrl(text: string): boolean {
  if (text.length > 1024 || !/^https?:\/\/[^/{}]+(\/\S*)?$/.test(text)) return false;
  const url = URL.parse(text.replaceAll('{code}', 'code'));
  return url !== null && url.username === '' && url.password === '';
}

/** Parses `Name: value`, one header on each line, each name once. Returns undefined if a line is no header (RFC 9110 §5.1, §5.5). */
export function parseHeaderLines(text: string): Map<string, string> | undefined {
  const headers = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === '') continue;
    const [, name = '', value = ''] =
      /^([\w!#$%&'*+.^`|~-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)[ \t]*$/.exec(line) ?? [];
    if (name === '' || headers.has(name.toLowerCase())) return undefined;
    headers.set(name.toLowerCase(), value);
  }
  return headers;
}
