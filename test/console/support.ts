import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { TOKEN } from '../control/admin/support.ts';

export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: the tests compare members of every type, and a wrong one fails them
  readonly body: any;
}

/** Sends exactly these headers: fetch would add or refuse some. */
export async function send(
  origin: string,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<Received> {
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const sent = request(origin + path, { method, headers: { ...length, ...headers } }).end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const content = await text(response);
  const isJson = /json/.test(response.headers['content-type'] ?? '');
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: isJson && content !== '' ? JSON.parse(content) : content,
  };
}

/** What a browser adds to a change that a page of the console makes. */
export const OWN_PAGE = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };

export function postLogin(origin: string, token: string = TOKEN, headers: Record<string, string> = {}, name?: string) {
  return send(origin, 'POST', '/console/session', { ...OWN_PAGE, ...headers }, JSON.stringify({ token, name }));
}

/** The headers of a request in a session. */
export interface SessionHeaders extends Record<string, string> {
  /** As `name=value`. */
  cookie: string;
  'x-tollgate-session-binding': string;
}

export async function logIn(
  origin: string,
  token: string = TOKEN,
  headers: Record<string, string> = {},
): Promise<SessionHeaders> {
  const response = await postLogin(origin, token, headers);
  if (response.status !== 200) throw new Error(`login: ${response.status} ${JSON.stringify(response.body)}`);
  return sessionOf(response);
}

/** Returns the session that a login began. */
export function sessionOf({ headers, body }: Pick<Received, 'headers' | 'body'>): SessionHeaders {
  const [cookie = ''] = (headers['set-cookie']?.[0] ?? '').split(';');
  return { cookie, 'x-tollgate-session-binding': body.binding };
}
