import { routeShape } from '../../formats/path-and-origin.ts';

/** `place`: `file:line`, or the file alone. */
export interface PlacedRoute {
  readonly path: string;
  readonly methods: readonly string[];
  readonly scope?: string | undefined;
  /** Of a configured route. */
  readonly key?: 'required' | 'none';
  /** Of a described route: the methods that need no key. */
  readonly unsecured?: readonly string[];
  readonly place: string;
}

/** Who may use a method of a route. */
export interface Access {
  readonly scope: string | undefined;
  /** Configured: it needs no key. Described: it may need none. */
  readonly isKeyless: boolean;
}

/**
 * Returns how configured routes differ from described ones, each as `file:line: missing: …`. The names of parameters do
 * not matter, nor which entry of a path has which methods. A route may need a key although the description has no
 * security, and preflight requests are not described. `section`: the place of missing routes.
 */
export function compareRoutes(
  described: readonly PlacedRoute[],
  configured: readonly PlacedRoute[],
  section: string,
): string[] {
  const wanted = byShape(described);
  const present = byShape(configured);
  const missing = [...wanted].filter(([shape]) => !present.has(shape));
  const superfluous = [...present].filter(
    ([shape, { access }]) => !wanted.has(shape) && ![...access].every(isPreflight),
  );
  const differing = [...present].flatMap(([shape, { path, place, access }]) => {
    const other = wanted.get(shape)?.access ?? access;
    const faults = [...new Set([...other.keys(), ...access.keys()])].flatMap((method) => {
      const [has, needs] = [access.get(method), other.get(method)];
      if (!has) return `${method} is missing`;
      if (!needs) return isPreflight([method, has]) ? [] : `${method} is superfluous`;
      if (has.isKeyless) return needs.isKeyless ? [] : `${method} has key: none`;
      if (has.scope === needs.scope) return [];
      return `${method} has ${has.scope ? `scope ${has.scope}` : 'no scope'} instead of ${needs.scope ?? 'none'}`;
    });
    return faults.length > 0 ? `${place}: differing: ${path}: ${faults.join(', ')}` : [];
  });
  const list = (access: ReadonlyMap<string, unknown>) => `[${[...access.keys()].join(', ')}]`;
  return [
    ...missing.map(([, { path, place, access }]) => `${section}: missing: ${path} ${list(access)}, as in ${place}`),
    ...superfluous.map(([, { path, place, access }]) => `${place}: superfluous: ${path} ${list(access)}`),
    ...differing,
  ];
}

function isPreflight([method, { isKeyless }]: readonly [string, Access]): boolean {
  return method === 'OPTIONS' && isKeyless;
}

/** Returns the first entry of each shape, with the access of all methods. GET includes HEAD. */
function byShape(routes: readonly PlacedRoute[]) {
  const shapes = new Map<string, { path: string; place: string; access: Map<string, Access> }>();
  for (const { path, place, methods, scope, key, unsecured } of routes) {
    const entry = shapes.get(routeShape(path)) ?? { path, place, access: new Map() };
    shapes.set(routeShape(path), entry);
    for (const method of methods) {
      entry.access.set(method, { scope, isKeyless: key === 'none' || unsecured?.includes(method) === true });
    }
    if (entry.access.has('GET')) entry.access.delete('HEAD');
  }
  return shapes;
}
