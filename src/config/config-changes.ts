/** Lists the changes between two configurations, and whether a reload can apply each. */
import { isDeepStrictEqual } from 'node:util';
import { camelCase } from '../base/camel-case.ts';
import { isMapping } from '../base/mapping.ts';
import { type Difference, differences, memberOf } from './compare-values.ts';
import type { Config, Disclosed } from './config.ts';
import { HIDDEN, withoutUserInfo } from './disclose.ts';
import { settingAt } from './json-schema.ts';
import { formatPath, type Path, pathKey } from './problems.ts';
import { isKeyWithin, type TakesEffect, takesEffect } from './reloadable-settings.ts';
import { filedPaths } from './secrets.ts';

export interface ConfigChange {
  /** As named in the file: `plans.starter.requests_per_hour`. */
  readonly key: string;
  /** Undefined if not set; mappings omit members that are not set. Secrets are hidden. */
  readonly before: Disclosed | undefined;
  readonly after: Disclosed | undefined;
  /** One line for people: `plans.starter.requests_per_hour: 1000 → 800`, `plan business is now premium`. */
  readonly text: string;
  /** `restart`: a running gateway cannot apply the change. */
  readonly takesEffect: TakesEffect;
}

/** A file may change thousands of overrides: responses and log lines list at most this many changes. */
export const MAX_LISTED_CHANGES = 100;

/**
 * Values that may differ although the disclosed ones are equal, by the key under which a change is reported: that of the
 * setting, or of the whole section if only a restart can change it.
 */
function hiddenValues(config: Config): ReadonlyMap<string, unknown> {
  const valueAt = (path: Path) => path.reduce<unknown>(configMember, config);
  const values = comparedPaths(config.disclosed).map((path): [string, unknown] => {
    const [section, name = ''] = [path.slice(0, -1), path.at(-1)];
    const file = [...section, `${name}_file`];
    const key = formatPath(settingAt(path) ? path : file);
    if (takesEffect(key) === 'restart') return [formatPath(section), valueAt(section)];
    return [key, valueAt([...section, settingAt(file)?.secretMember ?? name])];
  });
  return new Map(values);
}

/** Returns the paths of all secrets. A list that contains secrets is compared as a whole. */
function comparedPaths(disclosed: Disclosed): Path[] {
  return filedPaths(disclosed).map((path) => {
    const list = path.findIndex((step) => typeof step === 'number');
    return list < 0 ? path : path.slice(0, list);
  });
}

function configMember(value: unknown, step: string | number): unknown {
  if (value instanceof Map) return value.get(step);
  return isMapping(value) ? value[camelCase(String(step))] : undefined;
}

/** The parts of a configuration that can be compared without reading a secret. Plain data. */
export type DisclosedConfig = Pick<Config, 'disclosed' | 'expressions'>;

/** Returns changes in the order of the config reference, then those of secrets. Ignores differences of notation. */
export function configChanges(before: Config, after: Config): ConfigChange[] {
  const changes = [...differences(before.disclosed, after.disclosed)].map(changeOf);
  const hiddenBefore = hiddenValues(before);
  for (const [key, value] of hiddenValues(after)) {
    const isListed = changes.some((change) => isKeyWithin(change.key, key) || isKeyWithin(key, change.key));
    if (isListed || isDeepStrictEqual(hiddenBefore.get(key), value)) continue;
    changes.push({ key, before: HIDDEN, after: HIDDEN, text: `${key}: another value`, takesEffect: takesEffect(key) });
  }
  return changes;
}

/**
 * Like {@link configChanges}, for a preview. Of a secret, reveals only whether it is set. Shows a value that contains a
 * substitution as written in the file.
 */
export function disclosedChanges(before: DisclosedConfig, after: DisclosedConfig): ConfigChange[] {
  return [...differences(before.disclosed, after.disclosed)].map((difference) =>
    changeOf({
      ...difference,
      before: asWritten(difference.before, difference.pathBefore ?? difference.path, before.expressions),
      after: asWritten(difference.after, difference.path, after.expressions),
    }),
  );
}

function changeOf(difference: Difference): ConfigChange {
  const key = formatPath(difference.path);
  const [before, after] = [withoutUnset(difference.before), withoutUnset(difference.after)];
  const text = describe(key, { ...difference, before, after });
  return { key, before, after, text, takesEffect: takesEffect(key) };
}

/** Removes settings that are not set, which are null in a disclosed configuration. */
function withoutUnset(value: Disclosed | undefined): Disclosed | undefined {
  if (value === undefined || value === null) return undefined;
  return JSON.parse(JSON.stringify(value, (_, member: Disclosed) => member ?? undefined));
}

/**
 * Returns the settings whose secrets {@link disclosedChanges} may have missed: set on both sides, but not by the same
 * substitution. The result does not depend on whether the secrets are equal.
 */
export function uncomparedSecrets(before: DisclosedConfig, after: DisclosedConfig): string[] {
  const uncompared = comparedPaths(after.disclosed).filter((path) => {
    const [old, next] = [before, after].map(({ disclosed }) => path.reduce(memberOf, disclosed));
    if (old === undefined || old === null || !isDeepStrictEqual(old, next)) return false;
    const expression = before.expressions.get(pathKey(path));
    return expression === undefined || expression !== after.expressions.get(pathKey(path));
  });
  return [...new Set(uncompared.map(formatPath))];
}

/** Returns what the file sets, as written there: a preview accepts it. `given`: the values of the file. */
export function disclosedFile({ disclosed, expressions }: DisclosedConfig, given: unknown): Disclosed {
  return asWritten(onlyGiven(disclosed, given), [], expressions) ?? null;
}

function onlyGiven(disclosed: Disclosed, given: unknown): Disclosed {
  if (Array.isArray(disclosed) && Array.isArray(given)) return disclosed.map((item, i) => onlyGiven(item, given[i]));
  if (!isMapping(given)) return disclosed;
  // Not an empty secret, which counts as not set.
  const set = Object.entries(given).filter(([name, value]) => value === null || memberOf(disclosed, name) !== null);
  return Object.fromEntries(set.map(([name, value]) => [name, onlyGiven(memberOf(disclosed, name) ?? null, value)]));
}

/** Replaces each scalar with a substitution by its text in the file, because a variable may hold a misplaced secret. */
function asWritten(
  value: Disclosed | undefined,
  path: Path,
  expressions: DisclosedConfig['expressions'],
): Disclosed | undefined {
  const inner = (child: Disclosed, step: string | number) => asWritten(child, [...path, step], expressions) ?? null;
  if (expressions.size === 0 || value === undefined || value === null || value === HIDDEN) return value;
  if (Array.isArray(value)) return value.map(inner);
  if (isMapping(value))
    return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, inner(child, name)]));
  const expression = expressions.get(pathKey(path));
  return expression === undefined ? value : withoutUserInfo(expression);
}

function describe(key: string, { path, before, after, renamedPlans }: Difference): string {
  const [section, name] = path;
  if (renamedPlans !== undefined) {
    const names = renamedPlans.join(', ');
    return renamedPlans.length > 1 ? `plans ${names} are now ${name}` : `plan ${names} is now ${name}`;
  }
  if (section === 'plans' && path.length === 2) {
    return after === undefined ? `plan ${name} is removed` : `plan ${name} is added: ${inWords(after)}`;
  }
  return before === HIDDEN && after === HIDDEN
    ? `${key}: another value`
    : `${key}: ${inWords(before)} → ${inWords(after)}`;
}

const MAX_VALUE_LENGTH = 120;

function inWords(value: Disclosed | undefined): string {
  const text = inOneLine(value);
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text;
}

/** Formats a value on one line; mappings in YAML flow style, without quotes. */
function inOneLine(value: Disclosed | undefined): string {
  if (value === undefined || value === null) return 'none';
  if (Array.isArray(value)) return JSON.stringify(value);
  if (!isMapping(value)) return String(value);
  const members = Object.entries(value).map(([name, member]) => `${name}: ${inOneLine(member)}`);
  return members.length > 0 ? `{ ${members.join(', ')} }` : '{}';
}
