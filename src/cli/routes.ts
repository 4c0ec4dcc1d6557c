import { printable } from '../api/client/printable.ts';
import { readConfigFile } from '../config/config-files.ts';
import { YamlDocument } from '../config/document.ts';
import { processEnvironment } from '../config/environment.ts';
import { ConfigError } from '../config/problems.ts';
import { checkSchema } from '../config/schema-check.ts';
import { isPrefix } from '../formats/path-and-origin.ts';
import { EXIT, UsageError } from './exit-status.ts';
import { compareRoutes, type PlacedRoute } from './openapi/compare-routes.ts';
import { readOpenApi } from './openapi/read-openapi.ts';
import type { DescribedRoute } from './openapi/routes-from-openapi.ts';
import { print, remark } from './output.ts';

interface RoutesOptions {
  /** In place of the path of the first server. */
  readonly base?: string;
  /** Config file to compare with. */
  readonly check?: string;
}

export type RouteEntry = Pick<DescribedRoute, 'path' | 'methods' | 'scope'>;

/** Bounds the output for a hostile description. */
const MAX_WARNINGS = 1000;

/** Prints the routes of an OpenAPI description as a section of the config file, or how a config file differs. */
export async function printRoutes(source: string, { base, check }: RoutesOptions): Promise<number> {
  const prefix = base?.replace(/\/$/, '');
  if (prefix && !isPrefix(prefix)) throw new UsageError('--base must be a path of literal segments, such as /api/v1');
  const routes = await readDescribedRoutes(source, prefix);
  if (check === undefined) {
    await print(routesSection(routes));
    return EXIT.success;
  }
  const config = await readRoutes(check);
  const differences = compareRoutes(routes, config.routes, config.section);
  await print(
    differences.length > 0 ? `${differences.map(printable).join('\n')}\n` : `${check} has the routes of ${source}.\n`,
  );
  return differences.length > 0 ? EXIT.failure : EXIT.success;
}

/** Reads an OpenAPI description, and prints its warnings. `base`: in place of the path of the first server. */
export async function readDescribedRoutes(source: string, base: string | undefined) {
  const { routes, warnings } = await readOpenApi(source, base);
  for (const warning of warnings.slice(0, MAX_WARNINGS)) remark(printable(warning));
  if (warnings.length > MAX_WARNINGS) remark(`${source}: warning: ${warnings.length - MAX_WARNINGS} more warnings`);
  return routes;
}

/** Returns routes as a section of the config file. */
export function routesSection(routes: readonly RouteEntry[]): string {
  return `routes:\n${routes.map(asYaml).join('')}`;
}

/** Quoted, because braces and colons have a meaning in YAML. A scope must not name a variable of the gateway. */
function asYaml({ path, methods, scope }: RouteEntry): string {
  const scoped = scope === undefined ? '' : `, scope: ${JSON.stringify(scope).replaceAll('${', () => '$${')}`;
  return `  - { path: ${JSON.stringify(path)}, methods: [${methods.join(', ')}]${scoped} }\n`;
}

/** Reads the section `routes` alone: the rest of the file may need variables and files of the gateway's machine. */
async function readRoutes(file: string): Promise<{ routes: PlacedRoute[]; section: string }> {
  const document = new YamlDocument(Buffer.from(await readConfigFile(file)).toString(), processEnvironment());
  const problems = [...document.problems, ...checkSchema(document).problems]
    .filter(({ path: [section = 'routes'] }) => section === 'routes')
    .map((problem) => ({ line: document.lineOf(problem.path), ...problem }));
  if (problems.length > 0) throw ConfigError.of(file, problems);
  const routes = (document.at(['routes']) ?? []) as Omit<PlacedRoute, 'place'>[];
  const placeOf = (...path: (string | number)[]) => `${file}:${document.lineOf(path)}`;
  return {
    routes: routes.map((route, index) => ({ ...route, place: placeOf('routes', index) })),
    section: placeOf('routes'),
  };
}
