import type { Request } from 'express';

/** Returns the value of the Link header that names the next page of a list (RFC 8288). */
export function linkToNext({ originalUrl }: Pick<Request, 'originalUrl'>, cursor: string): string {
  const url = new URL(originalUrl, 'http://admin.invalid');
  url.searchParams.set('cursor', cursor);
  return `<${url.pathname + url.search}>; rel="next"`;
}
