/** Compares two disclosed configurations. A renamed plan (`formerly`) is compared with the plan of its former name. */
import { isDeepStrictEqual } from 'node:util';
import type { Disclosed } from './config.ts';
import { isMapping } from './document.ts';
import type { Path } from './problems.ts';

export interface Difference {
  /** Path in the later configuration; in the earlier one if a plan was removed. */
  readonly path: Path;
  /** Path in the earlier configuration; differs from `path` if a plan was renamed. */
  readonly pathBefore: Path;
  /** Undefined if not set. */
  readonly before: Disclosed | undefined;
  readonly after: Disclosed | undefined;
  /** Only for `plans.<name>.formerly`: the plans of the earlier configuration that it lists. */
  readonly renamedPlans?: readonly string[];
}

type Mapping = { readonly [name: string]: Disclosed };

/** Yields differences in the order of the settings. Compares lists as a whole, mappings on both sides by member. */
export function* differences(before: Disclosed, after: Disclosed): Generator<Difference> {
  if (!isMapping(before) || !isMapping(after)) return;
  for (const name of namesOf(before, after)) {
    const [old, next] = [own(before, name), own(after, name)];
    if (name === 'plans' && isMapping(old) && isMapping(next)) yield* planDifferences(old, next);
    else yield* valueDifferences(old, next, [name]);
  }
}

function* planDifferences(before: Mapping, after: Mapping): Generator<Difference> {
  const renamed = new Set<string>();
  const comparisons: Difference[] = [];
  for (const name of Object.keys(after)) {
    const plan = own(after, name);
    const formers = formerNames(plan).filter((former) => Object.hasOwn(before, former));
    for (const former of formers) renamed.add(former);
    const predecessor = Object.hasOwn(before, name) ? name : (formers[0] ?? name);
    const old = own(before, predecessor);
    const place = { path: ['plans', name], pathBefore: ['plans', predecessor] };
    if (formers.length === 0) comparisons.push({ ...place, before: old, after: plan });
    else {
      comparisons.push({ ...place, before: withoutFormerNames(old), after: withoutFormerNames(plan) });
      yield {
        path: [...place.path, 'formerly'],
        pathBefore: [...place.pathBefore, 'formerly'],
        before: memberOf(old, 'formerly'),
        after: memberOf(plan, 'formerly'),
        renamedPlans: formers,
      };
    }
  }
  for (const name of Object.keys(before)) {
    if (Object.hasOwn(after, name) || renamed.has(name)) continue;
    yield { path: ['plans', name], pathBefore: ['plans', name], before: own(before, name), after: undefined };
  }
  for (const { path, pathBefore, before, after } of comparisons)
    yield* valueDifferences(before, after, path, pathBefore);
}

function* valueDifferences(
  before: Disclosed | undefined,
  after: Disclosed | undefined,
  path: Path,
  pathBefore = path,
): Generator<Difference> {
  if (isMapping(before) && isMapping(after)) {
    for (const name of namesOf(before, after)) {
      yield* valueDifferences(own(before, name), own(after, name), [...path, name], [...pathBefore, name]);
    }
  } else if (!isDeepStrictEqual(before, after)) {
    yield { path, pathBefore, before, after };
  }
}

function formerNames(plan: Disclosed | undefined): string[] {
  const formerly = memberOf(plan, 'formerly');
  return Array.isArray(formerly) ? formerly.map(String) : [];
}

function withoutFormerNames(plan: Disclosed | undefined): Disclosed | undefined {
  if (!isMapping(plan)) return plan;
  const { formerly: _, ...rest } = plan;
  return rest;
}

/** Returns the member of a mapping; undefined if the value is not a mapping or lacks the member. */
export function memberOf(value: Disclosed | undefined, step: string | number): Disclosed | undefined {
  return isMapping(value) ? own(value, String(step)) : undefined;
}

function namesOf(before: Mapping, after: Mapping): ReadonlySet<string> {
  return new Set([...Object.keys(before), ...Object.keys(after)]);
}

function own(mapping: Mapping, name: string): Disclosed | undefined {
  return Object.hasOwn(mapping, name) ? mapping[name] : undefined;
}
