/** What the routes of the config are to a customer: scopes to restrict keys to, and a request to try a key with. */
import type { Section } from '../../config/config.ts';
import { Refusal } from '../frame/refusal.ts';

type Route = Section<'routes'>[number];
type Routes = readonly Route[];

/** Returns the routes with a scope, by scope. */
export function routesByScope(routes: Routes): Map<string, Route[]> {
  const scoped = routes.filter(({ scope }) => scope !== undefined);
  return Map.groupBy(scoped, ({ scope = '' }) => scope);
}

/** Returns the refusal of scopes that no route has. `kept`: scopes that the key has already. */
export function unknownScopeProblem(
  routes: Routes,
  wanted: readonly string[] | null | undefined,
  kept: readonly string[] = [],
): Refusal | undefined {
  const known = [...routesByScope(routes).keys()];
  if ((wanted ?? []).every((scope) => known.includes(scope) || kept.includes(scope))) return undefined;
  const rule = known.length > 0 ? `must be some of ${known.join(', ')}` : 'must be left out: this API has no scopes';
  return new Refusal('unprocessable', `scopes: ${rule}`);
}

/** Returns the URL of the first GET route that a key with these scopes may use, rather one without parameters. */
export function exampleUrl(apiUrl: string | undefined, routes: Routes, scopes?: readonly string[]): string | undefined {
  const usable = routes.filter(
    ({ methods, key, scope, deprecatedAt, sunsetAt }) =>
      methods.includes('GET') && key === 'required' && !(deprecatedAt ?? sunsetAt) && isCovered(scope, scopes),
  );
  const { path } = usable.find(({ path }) => !path.includes('{')) ?? usable[0] ?? {};
  if (apiUrl === undefined || path === undefined) return undefined;
  return apiUrl + path.replace(/\{(\w+)(\.\.\.)?\}/g, (_, name: string, rest) => (rest ? 'PATH' : name.toUpperCase()));
}

const isCovered = (scope: string | undefined, scopes?: readonly string[]) =>
  scope === undefined || scopes === undefined || scopes.includes(scope);
