import {
  type Alias,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  visit,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import { isMapping, type Mapping } from '../base/mapping.ts';
import { type Environment, substitute } from './environment.ts';
import { settingAt } from './json-schema.ts';
import type { PreviewScope } from './preview-scope.ts';
import { type ConfigFault, type Path, pathKey } from './problems.ts';
import { RENAMED_SETTINGS } from './schema.ts';

/** Replaces a value that could not be read; the problem is already reported. */
export const UNREADABLE: unique symbol = Symbol('unreadable');

/** Deep enough for every known key; bounds the recursion for any input. */
const MAX_DEPTH = 16;
/** Bounds alias expansion: with aliases of aliases, a small file can expand to very large values. */
const MAX_ALIASED_NODES = 10_000;
/** An aliased scalar counts as one node, plus one for every this many characters. */
const CHARACTERS_PER_NODE = 64;

/** Only capitals, and not within a word: a password may contain a `$` there. */
const BARE_VARIABLE = /(?<![\w$])\$[A-Z_][A-Z0-9_]+(?!\w)/;

const BARE_VARIABLE_WARNING = `contains "$" and a name without braces, which is not replaced: write \${NAME} if a variable is meant; else move the value to a variable or file`;

/** Within `{ }` and `[ ]`, YAML ends a plain scalar at the first brace. */
const FLOW_HINT = `; within { } and [ ] a \${NAME} must be on its own line, or in quotes if it is text`;

interface ReadingOptions {
  /** Limits the variables that the file may use. */
  readonly scope?: PreviewScope | undefined;
  /** Returns whether the value at a path is text; by default as the config's schema says. */
  readonly isText?: (path: Path) => boolean;
}

/**
 * The values of one YAML 1.2 document (core schema) after substitution. The value of a text setting is what the file says,
 * even if YAML reads that as a number.
 */
export class YamlDocument {
  /** {@link UNREADABLE} after a syntax error. */
  readonly root: unknown = UNREADABLE;
  readonly problems: ConfigFault[] = [];
  /** Scalars that contain a substitution, as written, keyed by {@link pathKey}. */
  readonly expressions = new Map<string, string>();
  readonly warnings: ConfigFault[] = [];
  readonly #environment: Environment | undefined;
  readonly #scope: PreviewScope | undefined;
  readonly #isText: (path: Path) => boolean;
  readonly #lines = new LineCounter();
  readonly #document;
  readonly #targets = new Map<Alias, Node>();
  /** The pairs of each mapping by key, for lookups by path. */
  readonly #pairs = new Map<YAMLMap, Map<string, Pair>>();
  /** The collections that enclose the current node; an alias to one of them would recurse forever. */
  readonly #open = new Set<Node>();
  #aliasDepth = 0;
  /** Nodes expanded from aliases so far. */
  #aliasedNodes = 0;

  /** `environment`: without it, nothing is substituted. */
  constructor(
    source: string,
    environment: Environment | undefined,
    { scope, isText = isTextSetting }: ReadingOptions = {},
  ) {
    this.#environment = environment;
    this.#scope = scope;
    this.#isText = isText;
    this.#document = parseDocument(source, {
      version: '1.2',
      schema: 'core',
      lineCounter: this.#lines,
      prettyErrors: false, // pretty errors quote the file, secrets included
      stringKeys: true, // keeps the id `0123` as written
      uniqueKeys: false, // checked in #mapping, which knows both lines
      logLevel: 'error', // 'silent' would drop every document but the first
    });
    const { contents, errors, warnings } = this.#document;
    const [fault] = [...errors, ...warnings].toSorted((a, b) => a.pos[0] - b.pos[0]);
    if (fault) {
      // Only the first error is reported: later ones are mostly consequences of it.
      const line = Math.max(1, this.#lines.linePos(fault.pos[0]).line);
      const text = source.split('\n')[line - 1] ?? '';
      const hint = environment && text.includes('${') ? FLOW_HINT : '';
      const what = /^ *\t/.test(text) ? TAB : describeSyntax(fault);
      this.problems.push({ line, path: [], what: `is not valid YAML: ${what}${hint}` });
      return;
    }
    this.#rename();
    this.#findTargets();
    this.root = this.#value(contents, []);
  }

  /** Returns the value at a path; undefined if there is none, {@link UNREADABLE} if it could not be read. */
  at(path: Path): unknown {
    return path.reduce(child, this.root);
  }

  /** Returns the line of a key or list item; if it has none, the line of its nearest ancestor. */
  lineOf(path: Path): number {
    let node: Node | null | undefined = this.#document.contents;
    let line = 1;
    for (const step of path) {
      if (isAlias(node)) node = this.#targets.get(node);
      const pair = isMap(node) ? this.#pairsOf(node).get(String(step)) : undefined;
      const item = isSeq(node) ? node.items[Number(step)] : undefined;
      line = this.#lineOfNode((pair?.key ?? item) as Node | undefined) ?? line;
      node = (pair?.value ?? item) as Node | undefined;
    }
    return line;
  }

  /** Former names of settings count as the present ones. */
  #rename(): void {
    for (const { section, formerly, name } of RENAMED_SETTINGS) {
      const mapping = this.#document.get(section);
      const pair = isMap(mapping) ? mapping.items.find((each) => keyOf(each) === formerly) : undefined;
      if (!isScalar(pair?.key)) continue;
      pair.key.value = name;
      this.warnings.push({ path: [section, name], what: `is called ${formerly} here, its former name: rename it` });
    }
  }

  /** Finds the target of each alias: the latest node above it with its anchor. */
  #findTargets(): void {
    // Not alias.resolve(): it walks the whole document, which takes minutes for a small file full of aliases.
    const anchors = new Map<string, Node>();
    visit(this.#document, {
      Node: (_, node) => {
        const target = isAlias(node) ? anchors.get(node.source) : undefined;
        if (isAlias(node) && target) this.#targets.set(node, target);
        else if (!isAlias(node) && node.anchor) anchors.set(node.anchor, node);
      },
    });
  }

  #value(node: Node | null, path: Path): unknown {
    if (node === null) return null;
    if (path.length > MAX_DEPTH) return this.#report(path, 'is nested too deeply');
    if (this.#aliasDepth > 0) {
      const isReported = this.#aliasedNodes > MAX_ALIASED_NODES;
      this.#aliasedNodes += isScalar(node) ? 1 + (node.source?.length ?? 0) / CHARACTERS_PER_NODE : 1;
      // Reported once: very many nodes can exceed the bound.
      if (isReported) return UNREADABLE;
      if (this.#aliasedNodes > MAX_ALIASED_NODES) return this.#report(path, 'repeats too much by aliases (*name)');
    }
    if (isAlias(node)) return this.#aliased(node, path);
    if (isScalar(node)) return this.#scalar(node, path);
    this.#open.add(node);
    const value = isMap(node)
      ? this.#mapping(node, path)
      : isSeq(node)
        ? node.items.map((item, index) => this.#value(item as Node | null, [...path, index]))
        : UNREADABLE;
    this.#open.delete(node);
    return value;
  }

  /** Without a prototype. */
  #mapping(node: YAMLMap, path: Path): Mapping {
    const mapping: Mapping = Object.create(null);
    const pairs = this.#pairsOf(node);
    for (const pair of node.items) {
      const key = keyOf(pair);
      const keyPath = [...path, key];
      // The schema's parser would drop it silently.
      if (key === '__proto__') this.#report(keyPath, 'is a name that cannot be used; choose another');
      else if (pairs.get(key) === pair) mapping[key] = this.#value(pair.value as Node | null, keyPath);
      else {
        const what = `is given twice, first on line ${this.lineOf(keyPath)}; keep one`;
        this.problems.push({ line: this.#lineOfNode(pair.key as Node) ?? 1, path: keyPath, what });
      }
    }
    return mapping;
  }

  #pairsOf(node: YAMLMap): ReadonlyMap<string, Pair> {
    const known = this.#pairs.get(node);
    if (known) return known;
    // Of duplicate keys, the first counts.
    const pairs = new Map(node.items.toReversed().map((pair) => [keyOf(pair), pair]));
    this.#pairs.set(node, pairs);
    return pairs;
  }

  #aliased(alias: Alias, path: Path): unknown {
    const target = this.#targets.get(alias);
    if (!target) return this.#report(path, 'uses an alias (*name) whose anchor (&name) is not above it');
    if (this.#open.has(target)) return this.#report(path, 'contains itself by an alias (*name)');
    this.#aliasDepth++;
    const value = this.#value(target, path);
    this.#aliasDepth--;
    return value;
  }

  #scalar(node: Scalar, path: Path): unknown {
    const { value } = node;
    if (typeof value === 'number') return this.#isText(path) ? (node.source ?? value) : value;
    if (typeof value !== 'string' || !this.#environment) return value;
    if (BARE_VARIABLE.test(value)) this.warnings.push({ path, what: BARE_VARIABLE_WARNING });
    if (!value.includes('${')) return value;
    const forbidden = this.#scope?.substitution(path, value);
    if (forbidden !== undefined) return this.#report(path, forbidden);
    this.expressions.set(pathKey(path), value);
    const result = substitute(value, this.#environment);
    if (!result.ok) {
      for (const fault of result.faults) this.#report(path, fault);
      return UNREADABLE;
    }
    const isPlain = node.type === 'PLAIN' && node.tag === undefined;
    return isPlain && !this.#isText(path) ? this.#resolved(result.text) : result.text;
  }

  /** Resolves a plain scalar as YAML's core schema does (YAML 1.2.2 §10.3.2). The text is never parsed as YAML. */
  #resolved(text: string): unknown {
    for (const tag of this.#document.schema.tags) {
      if (tag.collection || tag.default !== true || !tag.test?.test(text)) continue;
      const resolved = tag.resolve(text, () => undefined, {});
      return isScalar(resolved) ? resolved.value : resolved;
    }
    return text;
  }

  #lineOfNode(node: Node | null | undefined): number | undefined {
    return node?.range ? this.#lines.linePos(node.range[0]).line : undefined;
  }

  #report(path: Path, what: string): typeof UNREADABLE {
    this.problems.push({ path, what });
    return UNREADABLE;
  }
}

/** A setting that may be null is not only text. */
function isTextSetting(path: Path): boolean {
  const setting = settingAt(path);
  return setting?.type === 'string' && setting.enum === undefined;
}

export function child(parent: unknown, step: string | number): unknown {
  if (parent === undefined) return undefined;
  if (Array.isArray(parent) && typeof step === 'number') return parent[step];
  if (isMapping(parent) && typeof step === 'string') return parent[step];
  return UNREADABLE;
}

function keyOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : '';
}

const TAB = 'the line is indented with a tab; indent it with spaces';
const UNKNOWN_TAG = 'a tag (!name) that is not known or does not fit its value';
const UNCLEAR = 'this line cannot be understood';

/** In place of parser messages that quote the file, which may hold secrets. */
const SYNTAX_FAULTS: Partial<Record<ErrorCode, string>> = {
  UNEXPECTED_TOKEN: 'unexpected text; check the indentation, the quotes and the brackets',
  BAD_DQ_ESCAPE: 'a backslash in double quotes begins no known escape; use single quotes, or write \\\\',
  TAG_RESOLVE_FAILED: UNKNOWN_TAG,
  BAD_COLLECTION_TYPE: UNKNOWN_TAG,
  MULTIPLE_DOCS: 'there is more than one document (---) in the file; keep one',
  BAD_DIRECTIVE: 'a directive (%NAME) that is not known',
  NON_STRING_KEY: 'a key must be plain text',
  RESOURCE_EXHAUSTION: 'it is nested too deeply',
  BAD_ALIAS: UNCLEAR,
  IMPOSSIBLE: UNCLEAR,
};

function describeSyntax({ code, message }: YAMLError): string {
  return SYNTAX_FAULTS[code] ?? message.charAt(0).toLowerCase() + message.slice(1);
}
