/**
 * The routes of the public listener. Paths are compared as raw bytes, case-sensitively. An alias is a second prefix of
 * the same routes. There are no redirects: a near miss gets a 404 that names the correct form.
 */

/** `forward`: the backend responds. The gateway itself responds with the customer's quota usage, or its usage history. */
type RoutePurpose = 'forward' | 'usage' | 'usage_history';

export interface RouteDefinition {
  /** Such as `/api/v1/conversations/{id}`. Each segment is literal or, as a whole, a `{name}` parameter. */
  readonly path: string;
  readonly methods: readonly string[];
  readonly purpose: RoutePurpose;
}

interface Route {
  /** The canonical path template: the `route` label of metrics and logs. */
  readonly template: string;
  readonly purpose: RoutePurpose;
  readonly methods: ReadonlySet<string>;
  /** Value of the Allow header. */
  readonly allow: string;
}

/** `path`: the canonical path, for the backend. `detail`: a sentence for the client. */
type RouteMatch =
  | { readonly found: true; readonly route: Route; readonly path: string }
  | { readonly found: false; readonly detail: string };

export interface RouteTable {
  /** Finds the route of `path`, which must be valid (see path.ts) and have no query. */
  match(path: string): RouteMatch;
}

const MAX_ID_BYTES = 512;
const VERSIONED_PREFIX = /^(.*\/)(v\d+)(?=\/|$)/;

/** A parameter excludes `;`, unlike pchar: servers disagree whether it belongs to the segment or starts a suffix. */
function toPattern(template: string): RegExp {
  const segments = template.split('/').map((segment) => {
    if (segment.startsWith('{')) return `[^/;]{1,${MAX_ID_BYTES}}`;
    return segment.replace(/[.]/g, '\\$&');
  });
  return new RegExp(`^${segments.join('/')}$`);
}

function versionedPrefix(path: string): { base: string; version: string } | undefined {
  const [, base, version] = VERSIONED_PREFIX.exec(path) ?? [];
  return base === undefined || version === undefined ? undefined : { base, version };
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

/** A loop: a regular expression would scan each run of slashes once per slash, in quadratic time. */
function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (end > 0 && path[end - 1] === '/') end--;
  return path.slice(0, end);
}

export function createRouteTable(
  definitions: readonly RouteDefinition[],
  aliases: ReadonlyMap<string, string>,
): RouteTable {
  const literals = new Map<string, Route>();
  const parameterRoutes: { readonly pattern: RegExp; readonly route: Route }[] = [];
  for (const { path, methods, purpose } of definitions) {
    const route = { template: path, purpose, methods: new Set(methods), allow: methods.join(', ') };
    if (path.includes('{')) parameterRoutes.push({ pattern: toPattern(path), route });
    else literals.set(path, route);
  }
  const aliasPrefixes = [...aliases].map(([alias, target]) => ({ prefix: `${alias}/`, target }));

  const knownPrefixes = [...definitions.map(({ path }) => path), ...aliases.keys()]
    .map(versionedPrefix)
    .filter((prefix) => prefix !== undefined);
  const versions = [...new Set(knownPrefixes.map(({ base, version }) => base + version))].sort();
  const templates = listed(definitions.map(({ path }) => path));

  function canonical(path: string): string {
    for (const { prefix, target } of aliasPrefixes) {
      if (path.startsWith(prefix)) return target + path.slice(prefix.length - 1);
    }
    return path;
  }

  function find(canonicalPath: string): Route | undefined {
    const literal = literals.get(canonicalPath);
    if (literal) return literal;
    for (const { pattern, route } of parameterRoutes) if (pattern.test(canonicalPath)) return route;
    return undefined;
  }

  function explainMiss(path: string): string {
    const bare = withoutTrailingSlashes(path);
    // Name the template and never echo the path: it could contain a key.
    const withoutSlash = bare === path ? undefined : find(canonical(bare));
    if (withoutSlash) return `There is no trailing slash here: use ${withoutSlash.template} instead.`;
    const requested = versionedPrefix(path);
    const isOtherVersion = requested && knownPrefixes.some(({ base }) => base === requested.base);
    if (isOtherVersion && !versions.includes(requested.base + requested.version)) {
      return `Version ${requested.version} does not exist. The API is under ${listed(versions)}.`;
    }
    return `There is nothing at this path. Available paths: ${templates}.`;
  }

  return {
    match(path) {
      const canonicalPath = canonical(path);
      const route = find(canonicalPath);
      return route ? { found: true, route, path: canonicalPath } : { found: false, detail: explainMiss(path) };
    },
  };
}
