import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
  type Scalar,
  type YAMLError,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { type Path, type Problem, pathKey } from './problems.ts';
import { describeFault, type Environment, substitute } from './substitute.ts';

/** Replaces a value that could not be read; the problem is already reported. */
export const BROKEN: unique symbol = Symbol('broken');

/** A mapping's values, without a prototype. */
export type Mapping = Record<string, unknown>;

/** The values of a YAML file after substitution, and the line of each. */
export interface ConfigDocument {
  readonly problems: readonly Problem[];
  /** Returns the value at a path; undefined if there is none, {@link BROKEN} if it could not be read. */
  at(path: Path): unknown;
  /** Returns the line of a key or list item; if it has none, the line of its nearest ancestor. */
  lineOf(path: Path): number;
  /** Returns the source text of a scalar that YAML reads as another type, if it may be used as a string. */
  textAt(path: Path): string | undefined;
  /** Scalars that contain a substitution, as written, keyed by {@link pathKey}. */
  readonly expressions: ReadonlyMap<string, string>;
  /** Paths of scalars that contain `$NAME`, which is not substituted. */
  readonly bareVariables: readonly Path[];
  /** Replaces the value at a path by its text from {@link textAt}. */
  useText(path: Path, text: string): void;
}

interface Place {
  readonly line: number;
  text?: string;
}

/** Returns why the scalar at `path` must not be substituted, as the text of a problem; undefined if it may be. */
export type SubstitutionGuard = (path: Path, expression: string) => string | undefined;

/** Deep enough for every known key; bounds the recursion for any input. */
const MAX_DEPTH = 16;
/** Bounds alias expansion: with aliases of aliases, a small file can expand to very large values. */
const MAX_ALIASED_NODES = 10_000;
/** An aliased scalar counts as one node, plus one for every this many characters. */
const CHARACTERS_PER_NODE = 64;

/** Only capitals, and not within a word: a password may contain a `$` there. */
const BARE_VARIABLE = /(?<![\w$])\$[A-Z_][A-Z0-9_]+(?!\w)/;

/** Within `{ }` and `[ ]`, YAML ends a plain scalar at the first brace. */
const FLOW_HINT = `; within { } and [ ] a \${NAME} needs a line of its own, or quotes where text is wanted`;

/** Reads one YAML 1.2 document (core schema). After a syntax error, `wellFormed` is false and the values unusable. */
export function readDocument(
  source: string,
  env: Environment,
  guard: SubstitutionGuard = () => undefined,
): ConfigDocument & { readonly wellFormed: boolean } {
  const reader = new Reader(env, guard);
  const root = reader.readRoot(source);
  const { places, expressions, bareVariables, problems, wellFormed } = reader;
  const at = (path: Path): unknown => path.reduce(child, root);
  return {
    problems,
    wellFormed,
    at,
    lineOf(path) {
      for (let length = path.length; length > 0; length--) {
        const place = places.get(pathKey(path.slice(0, length)));
        if (place) return place.line;
      }
      return 1;
    },
    textAt: (path) => places.get(pathKey(path))?.text,
    expressions,
    bareVariables,
    useText(path, text) {
      const [parent, step] = [at(path.slice(0, -1)), path.at(-1)];
      if (isMapping(parent) && typeof step === 'string') parent[step] = text;
      if (Array.isArray(parent) && typeof step === 'number') parent[step] = text;
    },
  };
}

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function child(parent: unknown, step: string | number): unknown {
  if (parent === undefined) return undefined;
  if (Array.isArray(parent) && typeof step === 'number') return parent[step];
  if (isMapping(parent) && typeof step === 'string') return parent[step];
  return BROKEN;
}

class Reader {
  readonly problems: Problem[] = [];
  readonly places = new Map<string, Place>();
  readonly expressions = new Map<string, string>();
  readonly bareVariables: Path[] = [];
  wellFormed = true;
  readonly #env: Environment;
  readonly #guard: SubstitutionGuard;
  readonly #lines = new LineCounter();
  /** The collections that enclose the current node; an alias to one of them would recurse forever. */
  readonly #open = new Set<Node>();
  /** The latest node so far with each anchor. */
  readonly #anchors = new Map<string, Node>();
  /** The target of each alias: the latest node with its anchor when the alias was first read. */
  readonly #targets = new Map<Alias, Node | undefined>();
  #document: Document.Parsed<ParsedNode> | undefined;
  #aliasDepth = 0;
  /** Nodes expanded from aliases so far. */
  #aliasedNodes = 0;

  constructor(env: Environment, guard: SubstitutionGuard) {
    this.#env = env;
    this.#guard = guard;
  }

  readRoot(source: string): unknown {
    const document = parseDocument(source, {
      version: '1.2',
      schema: 'core',
      lineCounter: this.#lines,
      prettyErrors: false, // pretty errors quote the file, secrets included
      stringKeys: true, // keeps the id `0123` as written
      uniqueKeys: false, // checked in #mapping, which knows both lines
      logLevel: 'error', // 'silent' would drop every document but the first
    });
    this.#document = document;
    const [fault] = [...document.errors, ...document.warnings].toSorted((a, b) => a.pos[0] - b.pos[0]);
    if (fault) {
      // Only the first error is reported: later ones are mostly consequences of it.
      this.wellFormed = false;
      const line = Math.max(1, this.#lines.linePos(fault.pos[0]).line);
      const hint = source.split('\n')[line - 1]?.includes('${') ? FLOW_HINT : '';
      this.problems.push({ line, path: [], what: `is not valid YAML: ${describeSyntax(fault)}${hint}` });
    }
    return this.wellFormed ? this.#value(document.contents, []) : BROKEN;
  }

  #value(node: Node | null, path: Path): unknown {
    if (node === null) return null;
    if (path.length > MAX_DEPTH) return this.#broken(path, 'is nested too deeply');
    if (this.#aliasDepth > 0) {
      const isReported = this.#aliasedNodes > MAX_ALIASED_NODES;
      this.#aliasedNodes += isScalar(node) ? 1 + (node.source?.length ?? 0) / CHARACTERS_PER_NODE : 1;
      // Reported once: very many nodes can exceed the bound.
      if (isReported) return BROKEN;
      if (this.#aliasedNodes > MAX_ALIASED_NODES) return this.#broken(path, 'repeats too much by aliases (*name)');
    }
    if (isAlias(node)) return this.#aliased(node, path);
    this.#noteAnchor(node);
    if (isScalar(node)) return this.#scalar(node, path);
    this.#open.add(node);
    const value = isMap(node) ? this.#mapping(node, path) : isSeq(node) ? this.#list(node, path) : BROKEN;
    this.#open.delete(node);
    return value;
  }

  #list(node: YAMLSeq, path: Path): unknown[] {
    return node.items.map((item, index) => {
      const itemPath = [...path, index];
      const itemNode = item as Node | null;
      this.places.set(pathKey(itemPath), { line: this.#lineOfNode(itemNode) ?? this.#lineOfNode(node) ?? 1 });
      return this.#value(itemNode, itemPath);
    });
  }

  #mapping(node: YAMLMap, path: Path): Mapping {
    const mapping: Mapping = Object.create(null);
    for (const pair of node.items) {
      const keyNode = pair.key as Node | null;
      const key = isScalar(keyNode) && typeof keyNode.value === 'string' ? keyNode.value : '';
      if (keyNode) this.#noteAnchor(keyNode);
      const keyPath = [...path, key];
      const line = this.#lineOfNode(keyNode) ?? this.#lineOfNode(node) ?? 1;
      const first = this.places.get(pathKey(keyPath));
      if (Object.hasOwn(mapping, key)) {
        this.problems.push({ line, path: keyPath, what: `is given twice, first on line ${first?.line}; keep one` });
        continue;
      }
      this.places.set(pathKey(keyPath), { line });
      mapping[key] = this.#value(pair.value as Node | null, keyPath);
    }
    return mapping;
  }

  #aliased(alias: Alias, path: Path): unknown {
    // Not alias.resolve(): it walks the whole document, which takes minutes for a small file full of aliases.
    if (!this.#targets.has(alias)) this.#targets.set(alias, this.#anchors.get(alias.source));
    const target = this.#targets.get(alias);
    if (!target) return this.#broken(path, 'uses an alias (*name) whose anchor (&name) is not above it');
    if (this.#open.has(target)) return this.#broken(path, 'contains itself by an alias (*name)');
    this.#aliasDepth++;
    const value = this.#value(target, path);
    this.#aliasDepth--;
    return value;
  }

  /** Records a node's anchor. Nodes outside aliases are read in document order, so the latest anchor wins. */
  #noteAnchor(node: Node): void {
    if (this.#aliasDepth === 0 && 'anchor' in node && node.anchor !== undefined) this.#anchors.set(node.anchor, node);
  }

  #scalar(node: Scalar, path: Path): unknown {
    const place = this.places.get(pathKey(path));
    const { value } = node;
    if (typeof value !== 'string') {
      if (place && typeof value === 'number' && node.source !== undefined) place.text = node.source;
      return value;
    }
    if (BARE_VARIABLE.test(value)) this.bareVariables.push(path);
    if (!value.includes('${')) return value;
    const forbidden = this.#guard(path, value);
    if (forbidden !== undefined) return this.#broken(path, forbidden);
    this.expressions.set(pathKey(path), value);
    const result = substitute(value, this.#env);
    if (!result.ok) {
      for (const fault of result.faults) this.#broken(path, describeFault(fault));
      return BROKEN;
    }
    if (node.type !== 'PLAIN' || node.tag !== undefined) return result.text;
    const typed = this.#typed(result.text);
    if (place && typeof typed !== 'string') place.text = result.text;
    return typed;
  }

  /** Resolves a plain scalar as YAML's core schema does (YAML 1.2.2 §10.3.2). The text is never parsed as YAML. */
  #typed(text: string): unknown {
    const schema = this.#document?.schema;
    for (const tag of schema?.tags ?? []) {
      if (tag.collection || tag.default !== true || !tag.test?.test(text)) continue;
      const resolved = tag.resolve(text, () => undefined, {});
      return isScalar(resolved) ? resolved.value : resolved;
    }
    return text;
  }

  #lineOfNode(node: Node | null): number | undefined {
    return node?.range ? this.#lines.linePos(node.range[0]).line : undefined;
  }

  #broken(path: Path, what: string): typeof BROKEN {
    const key = [...path];
    let line: number | undefined;
    while (line === undefined && key.length > 0) {
      line = this.places.get(pathKey(key))?.line;
      key.pop();
    }
    this.problems.push({ line: line ?? 1, path, what });
    return BROKEN;
  }
}

/** Describes a syntax error. Replaces parser messages that quote the file, which may hold secrets. */
function describeSyntax({ code, message }: YAMLError): string {
  switch (code) {
    case 'UNEXPECTED_TOKEN':
      return 'something stands here that does not belong; check the indentation, the quotes and the brackets';
    case 'BAD_DQ_ESCAPE':
      return 'a backslash in double quotes begins no known escape; use single quotes, or write \\\\';
    case 'TAG_RESOLVE_FAILED':
    case 'BAD_COLLECTION_TYPE':
      return 'a tag (!name) that is not known or does not fit its value';
    case 'MULTIPLE_DOCS':
      return 'there is more than one document (---) in the file; keep one';
    case 'BAD_DIRECTIVE':
      return 'a directive (%NAME) that is not known';
    case 'NON_STRING_KEY':
      return 'a key must be plain text';
    case 'RESOURCE_EXHAUSTION':
      return 'it is nested too deeply';
    case 'BAD_ALIAS':
    case 'IMPOSSIBLE':
      return 'this line cannot be understood';
    default:
      return message.charAt(0).toLowerCase() + message.slice(1);
  }
}
