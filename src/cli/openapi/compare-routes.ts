import { routeShape } from '../../formats/path-and-origin.ts';

/** `place`: `file:line`, or the file alone. */
export interface PlacedRoute {
  readonly path: string;
  readonly methods: readonly string[];
  readonly scope?: string | undefined;
  readonly place: string;
}

/**
 * Returns how configured routes differ from described ones, each as `file:line: missing: …`. The names of parameters do
 * not matter, nor how entries share out the methods. `section`: the place of missing routes.
 */
export function compareRoutes(
  described: readonly PlacedRoute[],
  configured: readonly PlacedRoute[],
  section: string,
): string[] {
  const wanted = byShape(described);
  const present = byShape(configured);
  const missing = [...wanted].filter(([shape]) => !present.has(shape));
  const superfluous = [...present].filter(([shape]) => !wanted.has(shape));
  const differing = [...present].flatMap(([shape, { path, place, scopes }]) => {
    const other = wanted.get(shape)?.scopes ?? scopes;
    const faults = [...new Set([...other.keys(), ...scopes.keys()])].flatMap((method) => {
      if (!scopes.has(method)) return `${method} is missing`;
      if (!other.has(method)) return `${method} is superfluous`;
      const [has, needs] = [scopes.get(method), other.get(method)];
      return has === needs ? [] : `${method} has ${has ? `scope ${has}` : 'no scope'} instead of ${needs ?? 'none'}`;
    });
    return faults.length > 0 ? `${place}: differing: ${path}: ${faults.join(', ')}` : [];
  });
  const list = (scopes: ReadonlyMap<string, unknown>) => `[${[...scopes.keys()].join(', ')}]`;
  return [
    ...missing.map(([, { path, place, scopes }]) => `${section}: missing: ${path} ${list(scopes)}, as in ${place}`),
    ...superfluous.map(([, { path, place, scopes }]) => `${place}: superfluous: ${path} ${list(scopes)}`),
    ...differing,
  ];
}

/** Returns the first entry of each shape, with the scopes of all methods. GET includes HEAD. */
function byShape(routes: readonly PlacedRoute[]) {
  const shapes = new Map<string, { path: string; place: string; scopes: Map<string, string | undefined> }>();
  for (const { path, place, methods, scope } of routes) {
    const entry = shapes.get(routeShape(path)) ?? { path, place, scopes: new Map() };
    shapes.set(routeShape(path), entry);
    for (const method of methods) entry.scopes.set(method, scope);
    if (entry.scopes.has('GET')) entry.scopes.delete('HEAD');
  }
  return shapes;
}
