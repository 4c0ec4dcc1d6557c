/** Entry point of the thread that read-openapi.ts starts: parses a description and posts the routes that it describes. */
import { parentPort, workerData } from 'node:worker_threads';
import { isMap, isScalar, LineCounter, type Pair, parseDocument } from 'yaml';
import type { Path } from '../../config/problems.ts';
import type { PlacedRoute } from './compare-routes.ts';
import { routesFromOpenApi, UnusableDescriptionError } from './routes-from-openapi.ts';

export interface OpenApiJob {
  /** File or URL, as given. */
  readonly source: string;
  readonly text: string;
  /** Replaces the path of the first server; no slash at the end. */
  readonly base: string | undefined;
}

/** Places are `file:line`, in JSON the file alone. `warnings` and `fault` begin with their place. */
export type OpenApiResult =
  | { readonly fault: string }
  | { readonly routes: readonly PlacedRoute[]; readonly warnings: readonly string[] };

/** Far more than people write, and not enough to take seconds. */
const MAX_ALIASES = 10_000;
const YAML = { merge: true, stringKeys: true, prettyErrors: false, logLevel: 'error' } as const;

function run({ source, text, base }: OpenApiJob): OpenApiResult {
  const lines = new LineCounter();
  const json = text.trimStart().startsWith('{') ? parseJson(text) : undefined;
  // YAML may begin with { too, and its parser knows the line of a fault.
  const yaml = json === undefined ? parseDocument(text, { ...YAML, lineCounter: lines }) : undefined;
  const placeOf = (steps: Path) => (yaml ? `${source}:${lineOf(yaml.contents, steps, lines)}` : source);
  try {
    const [error] = yaml?.errors ?? [];
    if (error) {
      const what = error.code === 'RESOURCE_EXHAUSTION' ? 'it is nested too deeply' : error.message;
      return { fault: `${source}:${lines.linePos(error.pos[0]).line}: is not valid YAML: ${what}` };
    }
    const document: unknown = yaml ? yaml.toJS({ maxAliasCount: MAX_ALIASES }) : json;
    const { routes, warnings } = routesFromOpenApi(document, base, source);
    return {
      routes: routes.map((route) => ({ ...route, place: placeOf(route.place) })),
      warnings: warnings.map(({ place, what }) => `${placeOf(place)}: warning: ${asPointer(place)}: ${what}`),
    };
  } catch (error) {
    if (error instanceof UnusableDescriptionError) {
      const { place, message } = error;
      return { fault: `${placeOf(place)}: ${place.length > 0 ? `${asPointer(place)}: ` : ''}${message}` };
    }
    // Of the YAML parser: an alias without an anchor, or too many aliases.
    if (error instanceof ReferenceError) return { fault: `${source}: ${error.message}` };
    throw error;
  }
}

/** Formats a JSON pointer (RFC 6901). */
function asPointer(steps: Path): string {
  return steps.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the line of a key, or else of its nearest ancestor. */
function lineOf(root: unknown, place: Path, lines: LineCounter): number {
  let node = root;
  let line = 1;
  for (const step of place) {
    const pairs: readonly Pair[] = isMap(node) ? node.items : [];
    const pair = pairs.find(({ key }) => isScalar(key) && key.value === step);
    if (isScalar(pair?.key) && pair.key.range) line = lines.linePos(pair.key.range[0]).line;
    node = pair?.value;
  }
  return line;
}

parentPort?.postMessage(run(workerData));
