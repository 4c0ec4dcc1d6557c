/** The API that `tollgate try` puts behind a gateway, and how to call it. */
import { isIP } from 'node:net';
import { hostOf, isHostName } from '../../formats/host.ts';
import { parseUpstreamUrl } from '../../formats/path-and-origin.ts';
import { UsageError } from '../exit-status.ts';
import { type RouteEntry, readDescribedRoutes } from '../routes.ts';

interface DemoCustomer {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  /** Its own limit; undefined: that of the plan. */
  readonly requests_per_hour?: number;
  /** The value of its key; undefined: a new one. */
  readonly key?: string;
}

export interface TriedApi {
  readonly url: URL;
  /** In a sentence: `in front of …`. */
  readonly name: string;
  /** The file in config/ that the gateway's config is made from. */
  readonly template: 'any-backend.yaml' | 'gateway.yaml';
  /** In place of those of the template. */
  readonly routes?: readonly RouteEntry[] | undefined;
  readonly customers: readonly [DemoCustomer, ...DemoCustomer[]];
  /** A request to try. */
  readonly example: ExampleRequest;
  /** What to do after a first look, in a sentence. */
  readonly next: string;
}

export interface ExampleRequest {
  readonly method: string;
  readonly target: string;
}

/** Checks the URL of a backend, without a repetition of what may be a password. @throws UsageError */
function parseBackendUrl(text: string): URL {
  const url = URL.parse(parseUpstreamUrl(text) ?? '');
  if (url && (isHostName(hostOf(url)) || isIP(hostOf(url)) !== 0)) return url;
  throw new UsageError(
    'the URL of the backend must be http(s)://host[:port], or that with a path of literal segments; without user, query and fragment',
  );
}

/** Returns the API of the user: without an OpenAPI description, one with any path. */
export async function readUserApi(backendUrl: string, openapi: string | undefined): Promise<TriedApi> {
  const url = parseBackendUrl(backendUrl);
  // A path in the URL says where the API is, in place of the servers that the description names.
  const base = url.pathname === '/' ? undefined : '';
  const routes = openapi === undefined ? undefined : await readDescribedRoutes(openapi, base);
  return {
    url,
    name: url.href.replace(/\/$/, ''),
    routes,
    template: 'any-backend.yaml',
    customers: [{ id: 'demo', name: 'Demo', plan: 'starter' }],
    example: routes ? exampleOf(routes) : { method: 'GET', target: '/' },
    next: 'For production, add --save FOLDER to this command: it writes the files. More: docs/deploy.md.',
  };
}

/** Returns a line for a shell. */
export function curlCommand({ method }: ExampleRequest, url: string, keyHeader: string, key: string): string {
  const scheme = keyHeader.toLowerCase() === 'authorization' ? 'Bearer ' : '';
  return `curl -i${method === 'GET' ? '' : ` -X ${method}`} -H '${keyHeader}: ${scheme}${key}' '${url}'`;
}

/** A read is harmless, and a path without parameters needs no id that exists. */
function exampleOf(routes: readonly RouteEntry[]): ExampleRequest {
  const operations = routes.flatMap(({ path, methods }) => methods.map((method) => ({ method, path })));
  const rank = ({ method, path }: { method: string; path: string }) =>
    Number(method !== 'GET') * 2 + Number(path.includes('{'));
  const [{ method, path } = { method: 'GET', path: '/' }] = operations.toSorted((a, b) => rank(a) - rank(b));
  return { method, target: path.replace(/\{(\w+)\}/g, (_, name) => (/id$/i.test(name) ? '1' : name)) };
}
