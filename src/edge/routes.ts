/**
 * The routes of the public listener. Paths are compared as raw bytes, case-sensitively. An alias is a second prefix of
 * the same routes. There are no redirects: a near miss gets a 404 that names the correct form.
 *
 * The path alone chooses the route. Of several that match, the most specific one wins: segment by segment, a literal
 * before `{name}` before `{rest...}`. Only then the method chooses among the entries with the same paths. Many backends
 * ignore case, or a slash at the end. So a path that would match a more specific route if both were ignored gets 404:
 * what that route restricts must not be reached through another one.
 */
import type { RecentHistory } from '../customers/usage/recent-history.ts';
import { routeShape } from '../formats/path-and-origin.ts';
import type { Backend } from '../upstream/backend.ts';
import type { Destination } from '../upstream/forward-request.ts';
import type { HeaderPolicy } from '../upstream/request-headers.ts';
import type { RouteLife } from './route-life.ts';

/** The backend of a route, and what it gets besides the request. */
export interface RouteDestination extends Destination {
  readonly backend: Destination['backend'] & Pick<Backend, 'name' | 'began' | 'ended'>;
  readonly headers: HeaderPolicy;
  /** Claim `aud` of the assertions for the backend. */
  readonly audience: string;
}

/** Who responds: the backend, or the gateway itself with the customer's quota usage or its usage history. */
type RoutePurpose =
  | {
      readonly purpose: 'forward';
      /** Undefined: the gateway has no backend. */
      readonly destination?: RouteDestination | undefined;
      readonly maxBodyBytes: number;
      /** The scope that a key with scopes needs; undefined: none. */
      readonly scope?: string | undefined;
      /** That each request takes from every limit. Default: 1. */
      readonly units?: number | undefined;
      /** `none`: forwarded without a key. Default: `required`. */
      readonly key?: 'required' | 'none' | undefined;
      readonly life?: RouteLife | undefined;
    }
  | { readonly purpose: 'usage' }
  | { readonly purpose: 'usage_history'; readonly history: Pick<RecentHistory, 'of'> };

export type RouteDefinition = RoutePurpose & {
  /**
   * `/`, or such as `/api/v1/conversations/{id}`. Each segment is literal or, as a whole, a `{name}` parameter. The last
   * one may be `{name...}`: one or more segments, with an optional slash at the end.
   */
  readonly path: string;
  readonly methods: readonly string[];
};

export type Route = RoutePurpose & {
  /** The canonical path template: the `route` label of metrics and logs. */
  readonly template: string;
  /** What paths the route matches where case is ignored: equal for routes that match the same ones. */
  readonly shape: string;
  readonly methods: ReadonlySet<string>;
  /** Value of the Allow header: the methods of all entries with the same paths. */
  readonly allow: string;
};

/** Routes that have the same segments so far, as a tree of their further segments. */
interface Branch {
  readonly literals: Map<string, Branch>;
  parameter?: Branch;
  /** Ends with the segment of this branch. */
  route?: Route;
  /** Has `{rest...}` as its next segment. */
  catchAll?: Route;
}

/** `path`: the canonical path, for the backend. `detail`: a sentence for the client. */
type RouteMatch =
  | { readonly found: true; readonly route: Route; readonly path: string }
  | { readonly found: false; readonly detail: string };

export type PublicRouteTable = ReturnType<typeof createRouteTable>;

const MAX_ID_BYTES = 512;
const VERSIONED_PREFIX = /^(.*\/)(v\d+)(?=\/|$)/;

/** The part of a path that `{rest...}` matches: every segment obeys the rules of a `{name}`. */
const REST = new RegExp(`^[^/]{1,${MAX_ID_BYTES}}(?:/[^/]{1,${MAX_ID_BYTES}})*$`);
/** Maximum number of routes that a 404 lists. */
const MAX_LISTED = 10;

function isCatchAll(template: string): boolean {
  return template.endsWith('...}');
}

function newBranch(): Branch {
  return { literals: new Map() };
}

/** Returns the branch of `key`, which is added if there is none. */
function branchOf(branches: Map<string, Branch>, key: string): Branch {
  const branch = branches.get(key) ?? newBranch();
  branches.set(key, branch);
  return branch;
}

function addRoute(prefixes: Map<string, Branch>, template: string, route: Route): void {
  const prefix = template.slice(0, template.indexOf('/{'));
  const segments = template.slice(prefix.length + 1).split('/');
  const last = isCatchAll(template) ? segments.pop() : undefined;
  let branch = branchOf(prefixes, prefix);
  for (const segment of segments) {
    if (segment.startsWith('{')) branch = branch.parameter ??= newBranch();
    else branch = branchOf(branch.literals, segment);
  }
  if (last === undefined) branch.route = route;
  else branch.catchAll = route;
}

/** Returns the most specific route for the segments of `path` from `start` on. Visits each branch at most once. */
function findRoute(branch: Branch, path: string, start: number): Route | undefined {
  if (start > path.length) return branch.route;
  const slash = path.indexOf('/', start);
  const end = slash < 0 ? path.length : slash;
  // Hashing a segment costs more than all the rest: not for nothing.
  const literal = branch.literals.size > 0 ? branch.literals.get(path.slice(start, end)) : undefined;
  const found = literal && findRoute(literal, path, end + 1);
  if (found) return found;
  if (branch.parameter && end > start && end - start <= MAX_ID_BYTES) {
    const byParameter = findRoute(branch.parameter, path, end + 1);
    if (byParameter) return byParameter;
  }
  return branch.catchAll && REST.test(path.slice(start)) ? branch.catchAll : undefined;
}

function versionedPrefix(path: string): { base: string; version: string } | undefined {
  const [, base, version] = VERSIONED_PREFIX.exec(path) ?? [];
  return base === undefined || version === undefined ? undefined : { base, version };
}

/** Returns words as a list in a sentence: `a, b and c`. */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

/** What folding may change: upper case, percent signs, and characters beyond ASCII. */
const MAY_FOLD = /[^!-$&-@[-~]/;

/** Returns the path as a backend sees it that ignores case: that of ASCII, or that of Unicode. */
function folded(path: string): string {
  let text = path;
  try {
    text = decodeURIComponent(path);
  } catch {
    // Not a valid path: no backend sees it.
  }
  // U+017F and U+0131 become ASCII only in upper case, U+212A only in lower case. U+0130 becomes i and a combining dot,
  // but Java and the regular expressions of Python take it for i.
  return text.replaceAll('\u0130', 'i').toUpperCase().toLowerCase();
}

/** A loop: a regular expression would scan each run of slashes once per slash, in quadratic time. */
function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (end > 0 && path[end - 1] === '/') end--;
  return path.slice(0, end);
}

/** Returns a function that finds the most specific route for a path. `spelling`: of the templates, as of the paths. */
function createFinder(routes: readonly Route[], spelling: (template: string) => string) {
  const literals = new Map<string, Route>();
  /** Routes with parameters, by the literal segments before their first parameter. */
  const prefixes = new Map<string, Branch>();
  for (const route of routes) {
    const template = spelling(route.template);
    if (template.includes('{')) addRoute(prefixes, template, route);
    else literals.set(template === '/' ? '' : template, route);
  }
  const longestPrefix = Math.max(...[...prefixes.keys()].map(({ length }) => length));

  /**
   * `bare`: a path without the slash at its end, so the empty text for `/`. No route matches a `;`, unlike pchar: servers
   * disagree whether it belongs to the segment or starts a suffix.
   */
  return function find(bare: string): Route | undefined {
    const literal = literals.get(bare);
    if (literal || bare.includes(';')) return literal;
    // The route with the longest literal prefix is the most specific one.
    for (let end = longestPrefix + 1; end > 0; ) {
      end = bare.lastIndexOf('/', end - 1);
      const branch = prefixes.get(bare.slice(0, end));
      const route = branch && findRoute(branch, bare, end + 1);
      if (route) return route;
    }
    return undefined;
  };
}

/** `definitions`: those with the same paths have no method in common. */
export function createRouteTable(definitions: readonly RouteDefinition[], aliases: ReadonlyMap<string, string>) {
  const entries = Map.groupBy(definitions, ({ path }) => routeShape(path));
  const routes = definitions.map(({ path, methods, ...rest }): Route => {
    const allow = entries.get(routeShape(path))?.flatMap((entry) => entry.methods) ?? [];
    return {
      ...rest,
      template: path,
      shape: routeShape(folded(path)),
      methods: new Set(methods),
      allow: allow.join(', '),
    };
  });
  const routesOfShape = Map.groupBy(routes, ({ template }) => routeShape(template));
  const find = createFinder(routes, (template) => template);
  const findFolded = createFinder(routes, folded);
  const areFolded = routes.every(({ template }) => !MAY_FOLD.test(routeShape(template)));
  const aliasPrefixes = [...aliases].map(([alias, target]) => ({ prefix: `${alias}/`, target }));

  const knownPrefixes = [...definitions.map(({ path }) => path), ...aliases.keys()]
    .map(versionedPrefix)
    .filter((prefix) => prefix !== undefined);
  const versions = [...new Set(knownPrefixes.map(({ base, version }) => base + version))].sort();
  const templates = [...entries.values()].flatMap(([{ path } = { path: '' }]) => path);
  const others = templates.splice(MAX_LISTED).length;
  const available = listed(others > 0 ? [...templates, `${others} more`] : templates);

  function canonical(path: string): string {
    for (const { prefix, target } of aliasPrefixes) {
      if (path.startsWith(prefix)) return target + path.slice(prefix.length - 1);
    }
    return path;
  }

  /** Returns the more specific route that a backend which ignores case could see in the path of `route`. */
  function findHidden(route: Route, bare: string): Route | undefined {
    if (!route.template.includes('{') || (areFolded && !MAY_FOLD.test(bare))) return undefined;
    const best = findFolded(folded(bare));
    return best?.shape === route.shape ? undefined : best;
  }

  function entryFor(route: Route, method: string | undefined): Route {
    if (method === undefined || route.methods.has(method)) return route;
    return routesOfShape.get(routeShape(route.template))?.find(({ methods }) => methods.has(method)) ?? route;
  }

  function explainMiss(path: string): string {
    const bare = withoutTrailingSlashes(path);
    // Name the template and never echo the path: it could contain a key.
    const withoutSlash = bare === path ? undefined : find(canonical(bare));
    if (withoutSlash && !isCatchAll(withoutSlash.template)) {
      return `There is no trailing slash here: use ${withoutSlash.template} instead.`;
    }
    const requested = versionedPrefix(path);
    const isOtherVersion = requested && knownPrefixes.some(({ base }) => base === requested.base);
    if (isOtherVersion && !versions.includes(requested.base + requested.version)) {
      return `Version ${requested.version} does not exist. The API is under ${listed(versions)}.`;
    }
    const miss = path === '/' ? 'This is an API, without a page at its root.' : 'There is nothing at this path.';
    return `${miss} Available paths: ${available}.`;
  }

  return {
    /** Some requests take other units than 1, so the usage history counts requests, too. */
    hasUnits: routes.some((route) => route.purpose === 'forward' && (route.units ?? 1) !== 1),
    /**
     * Finds the route of `path`, which must be valid (see path.ts) and have no query. If no entry with the path has the
     * method, the route is one that lacks it.
     */
    match(path: string, method?: string): RouteMatch {
      const canonicalPath = canonical(path);
      // Chosen without the trailing slash: it must not lead past a route to a catch-all that allows more.
      const hasSlash = canonicalPath.endsWith('/');
      const bare = hasSlash ? canonicalPath.slice(0, -1) : canonicalPath;
      const route = find(bare);
      if (route === undefined || (hasSlash && bare !== '' && !isCatchAll(route.template))) {
        return { found: false, detail: explainMiss(path) };
      }
      const hidden = findHidden(route, bare);
      return hidden === undefined
        ? { found: true, route: entryFor(route, method), path: canonicalPath }
        : { found: false, detail: `Upper and lower case differ here: use ${hidden.template} instead.` };
    },
  };
}
