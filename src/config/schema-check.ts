import type { z } from 'zod';
import { withoutUserInfo } from './disclose.ts';
import { BROKEN, type ConfigDocument } from './document.ts';
import { nearest } from './nearest.ts';
import { type Path, type Problem, pathKey } from './problems.ts';
import { configSchema, type FileValues } from './schema.ts';
import { kindOf, knownKeys, schemaAt } from './walk.ts';

export interface SchemaCheck {
  /** Undefined if there is any problem. */
  readonly values: FileValues | undefined;
  readonly problems: readonly Problem[];
}

/** Checks the document against the schema. Where text is expected, turns typed scalars of the document into text. */
export function checkSchema(document: ConfigDocument): SchemaCheck {
  const first = configSchema.safeParse(document.at([]));
  if (first.success) return { values: first.data, problems: [] };
  if (!takeTexts(document, first.error.issues))
    return { values: undefined, problems: toProblems(document, first.error) };
  const second = configSchema.safeParse(document.at([]));
  if (second.success) return { values: second.data, problems: [] };
  return { values: undefined, problems: toProblems(document, second.error) };
}

function pathOf(issue: z.core.$ZodIssue): Path {
  return issue.path.map((step) => (typeof step === 'number' ? step : String(step)));
}

function takeTexts(document: ConfigDocument, issues: readonly z.core.$ZodIssue[]): boolean {
  let taken = false;
  for (const issue of issues) {
    if (issue.code !== 'invalid_type' || issue.expected !== 'string') continue;
    const text = document.textAt(pathOf(issue));
    if (text === undefined) continue;
    document.useText(pathOf(issue), text);
    taken = true;
  }
  return taken;
}

function toProblems(document: ConfigDocument, error: z.ZodError): Problem[] {
  const reported = new Set<string>();
  return error.issues.flatMap((issue): Problem[] => {
    const path = pathOf(issue);
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(document, path, key));
    const key = JSON.stringify(path);
    // Each value is reported once, even if it breaks several parts of its rule.
    if (reported.has(key) || document.at(path) === BROKEN) return [];
    reported.add(key);
    return [{ line: document.lineOf(path), path, what: describe(document, path, issue) }];
  });
}

function unknownKey(document: ConfigDocument, parent: Path, key: string): Problem {
  const path = [...parent, key];
  const schema = schemaAt(configSchema, parent);
  const known = (schema && knownKeys(schema)) ?? [];
  const near = nearest(key, known);
  const meant = near === undefined ? '' : `, perhaps ${near} is meant`;
  return { line: document.lineOf(path), path, what: `unknown key${meant}; known here: ${known.join(', ')}` };
}

function describe(document: ConfigDocument, path: Path, issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_key') return `the name ${issue.issues[0]?.message ?? issue.message}`;
  const value = document.at(path);
  if (value === undefined) return `is required and ${issue.message}`;
  const schema = schemaAt(configSchema, path);
  const kind = schema && kindOf(schema);
  if (kind?.secret || kind === undefined) return issue.message;
  const isContainer = kind.type === 'mapping' || kind.type === 'list';
  if (isContainer && issue.code !== 'invalid_type') return issue.message;
  const hint = issue.code !== 'custom' && isQuoted(value) ? '; without quotes it would not be text' : '';
  return `${issue.message}, got ${isContainer ? kindInWords(value) : shown(document, path, value)}${hint}`;
}

/** Returns whether the value is text that YAML would read as a number or boolean without the quotes. */
function isQuoted(value: unknown): boolean {
  return typeof value === 'string' && /^(?:[-+]?\d+|true|false)$/.test(value);
}

const MAX_SHOWN = 60;

function shown(document: ConfigDocument, path: Path, value: unknown): string {
  const expression = document.expressions.get(pathKey(path));
  if (expression !== undefined) return `what ${JSON.stringify(clipped(expression))} stands for`;
  if (typeof value === 'string') return JSON.stringify(clipped(withoutUserInfo(value, '…@')));
  if (typeof value === 'number') return clipped(document.textAt(path) ?? String(value));
  return typeof value === 'boolean' ? String(value) : kindInWords(value);
}

function clipped(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}

function kindInWords(value: unknown): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'a mapping' : 'a single value';
}
