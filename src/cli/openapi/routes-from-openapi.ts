/**
 * Derives routes from an OpenAPI description, 3.0 to 3.2. The routes never forward more than is described: what they
 * cannot express is left out, with a warning.
 */
import { inNumber } from '../../base/in-number.ts';
import { isMapping, type Mapping } from '../../base/mapping.ts';
import type { Path } from '../../config/problems.ts';
import { isScope } from '../../formats/key-restrictions.ts';
import { isPrefix, isRoutePath, routeShape } from '../../formats/path-and-origin.ts';
import { ROUTE_METHODS } from '../../formats/route-methods.ts';
import type { Access } from './compare-routes.ts';

/** `place`: mapping keys from the root of the description. */
interface Finding {
  readonly place: Path;
  readonly what: string;
}

export interface DescribedRoute {
  readonly path: string;
  readonly methods: readonly string[];
  readonly scope?: string | undefined;
  /** Those of `methods` whose operations have no security, or an optional one. */
  readonly unsecured: readonly string[];
  readonly place: Path;
}

/** No routes can be derived. */
export class UnusableDescriptionError extends Error {
  readonly place: Path;

  constructor(place: Path, what: string) {
    super(what);
    this.place = place;
  }
}

/** Beside the mapping `additionalOperations`, which OpenAPI 3.2 has for all other methods. */
const METHOD_FIELDS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'query', 'trace'];
const MAX_PATHS = 10_000;
const MAX_REFERENCES = 16;
const NOT_A_ROUTE =
  'left out: routes have no partial segments such as {b}.json, no "/" at the end, and no characters but A-Z a-z 0-9 . _ ~ -';
const OWN_SERVERS = 'has servers of its own, which its route ignores: all routes have one prefix';

/**
 * `base`: replaces the path of the first server; no slash at the end. `source`: if it is a URL, relative URLs of servers
 * refer to it. @throws UnusableDescriptionError
 */
export function routesFromOpenApi(document: unknown, base: string | undefined, source: string) {
  const warnings: Finding[] = [];
  const unsecured: Path[] = [];
  const warn = (place: Path, what: string) => void warnings.push({ place, what });

  /** Returns a path item or operation with the fields of all that it refers to; its own prevail. */
  function resolve(value: unknown, place: Path): Mapping | undefined {
    let merged: Mapping = {};
    let node = value;
    for (let references = 0; isMapping(node); references++) {
      merged = { ...node, ...merged };
      const { $ref: reference } = node;
      if (reference === undefined) return merged;
      const isLocal = typeof reference === 'string' && reference.startsWith('#');
      if (!isLocal || references === MAX_REFERENCES) {
        const circle = `its $ref leads in a circle, or through more than ${MAX_REFERENCES} others`;
        warn(place, `left out: ${isLocal ? circle : 'its $ref leads to another document; bundle them into one'}`);
        return undefined;
      }
      const [, ...steps] = decoded(reference).split('/');
      node = valueAt(
        root,
        steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~')),
      );
    }
    warn(place, `left out: it ${node === value ? 'is not a mapping' : 'has a $ref that leads to nothing'}`);
    return undefined;
  }

  /** Returns what the security requirements demand. Their scope counts only if they name exactly one. */
  function accessOf(security: unknown, place: Path): Access {
    const alternatives = [security ?? []].flat();
    const isSecured = alternatives.every((each) => isMapping(each) && Object.keys(each).length > 0);
    if (!isSecured || alternatives.length === 0) {
      unsecured.push(place);
      return { scope: undefined, isKeyless: true };
    }
    const [scope, ...more] = new Set(alternatives.flatMap((each) => Object.values(each as Mapping).flat()));
    const unscoped = { scope: undefined, isKeyless: false };
    if (scope === undefined) return unscoped;
    if (more.length === 0 && typeof scope === 'string' && isScope(scope)) return { scope, isKeyless: false };
    const fault =
      more.length > 0
        ? `names ${more.length + 1} scopes, and a route has one`
        : 'names a scope that is not 1 to 128 visible ASCII characters without " and \\';
    warn(place, `its security ${fault}: its route has none, so every key may use it`);
    return unscoped;
  }

  const root = checkedRoot(document);
  const prefix = base ?? prefixOf(root, source, warn);
  const shapes = new Map<string, { path: string; place: Path; operations: Map<string, Access> }>();
  for (const [template, item] of Object.entries(root.paths)) {
    if (template.startsWith('x-')) continue;
    const place = ['paths', template];
    const fields = resolve(item, place);
    if (fields === undefined) continue;
    const path = routePathOf(prefix + template);
    if (!template.startsWith('/') || !isRoutePath(path)) {
      warn(place, NOT_A_ROUTE);
      continue;
    }
    if (fields.servers !== undefined) warn(place, OWN_SERVERS);
    const known = shapes.get(routeShape(path));
    if (known) warn(place, `matches the same paths as ${known.path}: their methods are put together`);
    const operations = known?.operations ?? new Map<string, Access>();
    if (!known) shapes.set(routeShape(path), { path, place, operations });
    const others = Object.keys(isMapping(fields.additionalOperations) ? fields.additionalOperations : {});
    for (const steps of [
      ...METHOD_FIELDS.filter((field) => Object.hasOwn(fields, field)).map((field) => [field]),
      ...others.map((name) => ['additionalOperations', name]),
    ]) {
      const [field = '', method = field.toUpperCase()] = steps;
      const at = [...place, ...steps];
      const operation = resolve(valueAt(fields, steps), at);
      if (operation === undefined) continue;
      if (!ROUTE_METHODS.includes(method)) warn(at, 'left out: routes do not forward this method');
      else if (operations.has(method)) warn(at, 'left out: the method is described twice for the same paths');
      else {
        if (operation.servers !== undefined) warn(at, OWN_SERVERS);
        operations.set(method, accessOf(operation.security ?? root.security, at));
      }
    }
    const [get, head] = [operations.get('GET'), operations.get('HEAD')];
    if (get === undefined || head === undefined) continue;
    if (get.scope !== head.scope) warn(place, 'HEAD has another scope than GET; routes give it that of GET');
    operations.delete('HEAD');
  }
  const [first] = unsecured;
  if (first) {
    const others = unsecured.length > 1 ? `, like ${inNumber(unsecured.length - 1, 'more operation')}` : '';
    warn(first, `has no security, or an optional one${others}: its route needs a key all the same`);
  }
  const routes = [...shapes.values()].flatMap(({ path, place, operations }) =>
    [...Map.groupBy(operations, ([, { scope }]) => scope)].map(([scope, entries]): DescribedRoute => {
      const methodsOf = (chosen: typeof entries) => chosen.map(([method]) => method);
      const unsecured = methodsOf(entries.filter(([, { isKeyless }]) => isKeyless));
      return { path, methods: methodsOf(entries), scope, unsecured, place };
    }),
  );
  if (routes.length === 0) throw new UnusableDescriptionError(['paths'], 'has no operation that a route can forward');
  return { routes: routes.sort((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path))), warnings };
}

function checkedRoot(document: unknown): Mapping & { readonly paths: Mapping } {
  const fail = (place: Path, what: string) => new UnusableDescriptionError(place, what);
  if (!isMapping(document))
    throw fail([], 'is not an OpenAPI description: it must be a mapping with openapi: and paths:');
  if (document.swagger !== undefined) {
    throw fail(['swagger'], 'is Swagger 2, which has another form; convert the file to OpenAPI 3 first');
  }
  if (!/^3\.[012](\.|$)/.test(String(document.openapi))) {
    throw fail(['openapi'], 'must be a version of OpenAPI from 3.0 to 3.2, such as openapi: 3.1.0');
  }
  const { paths } = document;
  if (!isMapping(paths)) throw fail(['paths'], 'must be a mapping: the paths that routes are made of');
  if (Object.keys(paths).length > MAX_PATHS) throw fail(['paths'], `has more than ${MAX_PATHS} paths; split the file`);
  return { ...document, paths };
}

/** Returns the path of the first server, without a slash at the end. */
function prefixOf({ servers }: Mapping, source: string, warn: (place: Path, what: string) => void): string {
  if (!Array.isArray(servers) || servers.length === 0) return '';
  const [{ url, variables }] = servers.map((server) => (isMapping(server) ? server : {})) as [Mapping];
  const filled = String(url).replace(/\{([^{}]*)\}/g, (expression, name) => {
    const variable = isMapping(variables) ? variables[name] : undefined;
    return isMapping(variable) && Object.hasOwn(variable, 'default') ? String(variable.default) : expression;
  });
  const path = URL.parse(filled, /^https?:/i.test(source) ? source : 'http://localhost/')?.pathname.replace(/\/$/, '');
  if (typeof url !== 'string' || path === undefined || (path !== '' && !isPrefix(path))) {
    const what = 'has no path that can begin a route; give one with --base, such as --base /api/v1';
    throw new UnusableDescriptionError(['servers', 0, 'url'], what);
  }
  if (servers.length > 1) {
    warn(
      ['servers'],
      `has ${servers.length} servers; routes begin with the path of the first one, "${path || '/'}", unless --base is given`,
    );
  }
  return path;
}

function valueAt(root: Mapping, steps: readonly string[]): unknown {
  return steps.reduce<unknown>(
    (node, step) => (isMapping(node) && Object.hasOwn(node, step) ? node[step] : undefined),
    root,
  );
}

/** Decodes a URI fragment. Percent signs that encode nothing stand for themselves. */
function decoded(fragment: string): string {
  return fragment.replace(/(?:%[0-9a-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString());
}

/** Returns the path with the names of parameters as routes have them: words, each once. */
function routePathOf(path: string): string {
  const names = new Set<string>();
  return path.replace(/(?<=\/)\{([\w-]+(?:\.[\w-]+)*)\}(?=\/|$)/g, (_, original: string) => {
    let name = original.replace(/\W/g, '_').replace(/^\d/, '_$&');
    while (names.has(name)) name += '_';
    names.add(name);
    return `{${name}}`;
  });
}
