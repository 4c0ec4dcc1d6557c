/** Compares two disclosed configurations. A renamed plan (`formerly`) is compared with the plan of its former name. */
import { isDeepStrictEqual } from 'node:util';
import { isMapping } from '../base/mapping.ts';
import type { Disclosed } from './config.ts';
import type { Path } from './problems.ts';

export interface Difference {
  /** Path in the later configuration; in the earlier one if the value was removed. */
  readonly path: Path;
  /** Path in the earlier configuration, if a plan was renamed. */
  readonly pathBefore?: Path;
  /** Undefined if not set. */
  readonly before: Disclosed | undefined;
  readonly after: Disclosed | undefined;
  /** Only for `plans.<name>.formerly`: the plans of the earlier configuration that it lists. */
  readonly renamedPlans?: readonly string[];
}

type DisclosedMapping = { readonly [name: string]: Disclosed };

/** Yields renamed plans, then differences by setting. Compares lists as a whole, mappings on both sides by member. */
export function* differences(before: Disclosed, after: Disclosed): Generator<Difference> {
  const plansBefore = mappingOf(memberOf(before, 'plans'));
  /** Each under its name in `after`. */
  const alignedPlans: Record<string, Disclosed> = { ...plansBefore };
  const nameBefore = new Map<string | number | undefined, string>();
  for (const [name, plan] of Object.entries(mappingOf(memberOf(after, 'plans')))) {
    const { formerly } = mappingOf(plan);
    const renamed = Array.isArray(formerly)
      ? formerly.map(String).filter((old) => Object.hasOwn(plansBefore, old))
      : [];
    const predecessor = Object.hasOwn(plansBefore, name) ? name : renamed[0];
    if (formerly === undefined || renamed.length === 0 || predecessor === undefined) continue;
    const planBefore = mappingOf(plansBefore[predecessor]);
    nameBefore.set(name, predecessor);
    for (const old of renamed) delete alignedPlans[old];
    yield {
      path: ['plans', name, 'formerly'],
      pathBefore: ['plans', predecessor, 'formerly'],
      before: planBefore.formerly,
      after: formerly,
      renamedPlans: renamed,
    };
    alignedPlans[name] = { ...planBefore, formerly };
  }
  for (const difference of valueDifferences({ ...mappingOf(before), plans: alignedPlans }, after, [])) {
    const [section, plan, ...rest] = difference.path;
    const predecessor = section === 'plans' ? nameBefore.get(plan) : undefined;
    yield predecessor === undefined ? difference : { ...difference, pathBefore: ['plans', predecessor, ...rest] };
  }
}

function* valueDifferences(
  before: Disclosed | undefined,
  after: Disclosed | undefined,
  path: Path,
): Generator<Difference> {
  if (isMapping(before) && isMapping(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      yield* valueDifferences(memberOf(before, name), memberOf(after, name), [...path, name]);
    }
  } else if (!isDeepStrictEqual(before, after)) yield { path, before, after };
}

/** Returns the member of a mapping; undefined if the value is not a mapping or lacks the member. */
export function memberOf(value: Disclosed | undefined, name: string | number): Disclosed | undefined {
  return isMapping(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function mappingOf(value: Disclosed | undefined): DisclosedMapping {
  return isMapping(value) ? value : {};
}
