import type { z } from 'zod';
import { UNREADABLE, type YamlDocument } from './document.ts';
import { variablesIn } from './environment.ts';
import { type SettingSchema, settingAt } from './json-schema.ts';
import { type ConfigFault, type Path, pathKey } from './problems.ts';
import { configSchema, type FileValues } from './schema.ts';

export interface SchemaCheck {
  /** Undefined if there is any problem. */
  readonly values: FileValues | undefined;
  readonly problems: readonly ConfigFault[];
  /** Returns whether the value at a path, or its default, breaks no rule. */
  readonly isValid: (path: Path) => boolean;
}

/** Checks the document against the schema. */
export function checkSchema(document: YamlDocument): SchemaCheck {
  const { data: values, error } = configSchema.safeParse(document.root);
  const issues = error?.issues ?? [];
  return { values, problems: toProblems(document, issues), isValid: validity(issues) };
}

function pathOf(issue: z.core.$ZodIssue): Path {
  return issue.path.map((step) => (typeof step === 'number' ? step : String(step)));
}

function toProblems(document: YamlDocument, issues: readonly z.core.$ZodIssue[]): ConfigFault[] {
  const reported = new Set<string>();
  return issues.flatMap((issue): ConfigFault[] => {
    const path = pathOf(issue);
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(path, key));
    const key = pathKey(path);
    // Each value is reported once, even if it breaks several parts of its rule.
    if (reported.has(key) || document.at(path) === UNREADABLE) return [];
    reported.add(key);
    return [{ path, what: describe(document, path, issue) }];
  });
}

/** A value is invalid if an issue concerns it, a value that contains it, or one that it contains. */
function validity(issues: readonly z.core.$ZodIssue[]): SchemaCheck['isValid'] {
  const invalid = issues.filter(({ code }) => code !== 'unrecognized_keys').map(pathOf);
  const prefixesOf = (path: Path) => path.map((_, index) => pathKey(path.slice(0, index + 1)));
  const reported = new Set(invalid.map(pathKey));
  const containing = new Set(invalid.flatMap(prefixesOf));
  return (path) => !containing.has(pathKey(path)) && !prefixesOf(path).some((prefix) => reported.has(prefix));
}

function unknownKey(parent: Path, key: string): ConfigFault {
  const known = Object.keys(settingAt(parent)?.properties ?? {});
  const near = nearest(key, known);
  const meant = near === undefined ? '' : `, perhaps ${near} is meant`;
  return { path: [...parent, key], what: `unknown key${meant}; known here: ${known.join(', ')}` };
}

function describe(document: YamlDocument, path: Path, issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_key') return `the name ${issue.issues[0]?.message ?? issue.message}`;
  const value = document.at(path);
  if (value === undefined) return `is required and ${issue.message}`;
  const setting = settingAt(path);
  if (setting === undefined || setting.isSecret) return issue.message;
  const isContainer = setting.type === 'object' || setting.type === 'array';
  if (isContainer && issue.code !== 'invalid_type') return issue.message;
  const hint = issue.code !== 'custom' && isQuoted(value) ? '; remove the quotes' : '';
  const variables = variablesIn(document.expressions.get(pathKey(path)) ?? '');
  const received =
    variables.length > 0
      ? `the value of ${variables.map((name) => `\${${name}}`).join(' and ')}`
      : isContainer
        ? kindInWords(value)
        : shown(value, setting);
  return received === undefined ? issue.message : `${issue.message}, got ${received}${hint}`;
}

/** Returns whether the value is text that YAML would read as a number or boolean without the quotes. */
function isQuoted(value: unknown): boolean {
  return typeof value === 'string' && /^(?:[-+]?\d+|true|false)$/.test(value);
}

/**
 * Returns a value for a problem's text; undefined if the rule says enough. Text is never repeated, whatever the setting:
 * it may be a secret that was meant for another one.
 */
function shown(value: unknown, { type = [] }: SettingSchema): string | undefined {
  if (typeof value === 'object') return kindInWords(value);
  if ([type].flat().includes('string')) return undefined;
  return typeof value === 'string' ? 'text' : String(value);
}

function kindInWords(value: unknown): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'a mapping' : 'a single value';
}

/** Returns the Levenshtein distance from `a` to `b`: the number of characters to insert, delete or replace. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** Returns the candidate that `word` probably means, if one is close enough to suggest. */
function nearest(word: string, candidates: readonly string[]): string | undefined {
  const comparable = word.slice(0, 64).toLowerCase().replaceAll('-', '_');
  const ranked = candidates
    .map((candidate) => ({ candidate, edits: distance(comparable, candidate) }))
    .filter(({ candidate, edits }) => edits <= Math.ceil(candidate.length / 3))
    .sort((a, b) => a.edits - b.edits);
  return ranked[0]?.candidate;
}
