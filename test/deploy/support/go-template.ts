/**
 * Renders the part of Go's text/template and of Helm's functions that the chart uses, and refuses everything else: a
 * chart whose templates stay this simple can be tested where there is no Helm.
 *
 * Actions: `if`, `with`, `else`, `end`, `define`, and pipelines of the functions below.
 */
import { stringify } from 'yaml';

type Scope = { readonly [name: string]: unknown };

type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'print'; readonly pipeline: string }
  | {
      readonly kind: 'if' | 'with';
      readonly pipeline: string;
      readonly then: readonly Node[];
      readonly otherwise: readonly Node[];
    };

interface Piece {
  readonly text: string;
  readonly isAction: boolean;
}

const ACTION = /\{\{(-\s)?\s*(.*?)\s*(\s-)?\}\}/s;
const TOKEN = /\s*("(?:[^"\\]|\\.)*"|-?\d+(?![\w.])|\.[\w.]*|[A-Za-z]\w*|[()|])/y;

/** Named templates of all files of a chart, and how to render any text with them. */
export class GoTemplates {
  readonly #named = new Map<string, readonly Node[]>();

  /** Takes the definitions of a file. @throws Error when it holds something that is not understood. */
  define(source: string): void {
    this.#parse(source);
  }

  /** @throws Error when the text holds something that is not understood, or `required` finds nothing. */
  render(source: string, data: Scope): string {
    return this.#renderNodes(this.#parse(source), data, data);
  }

  #parse(source: string): readonly Node[] {
    const pieces = splitActions(source);
    const nodes = this.#parseBlock(pieces, []);
    if (pieces.length > 0) throw new Error(`unexpected {{ ${pieces[0]?.text} }}`);
    return nodes;
  }

  /** Takes pieces up to one of `ends`, which stays. */
  #parseBlock(pieces: Piece[], ends: readonly string[]): Node[] {
    const nodes: Node[] = [];
    for (let piece = pieces[0]; piece !== undefined; piece = pieces[0]) {
      if (piece.isAction && ends.includes(piece.text)) return nodes;
      pieces.shift();
      const [, word = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(piece.text) ?? [];
      if (!piece.isAction) nodes.push({ kind: 'text', text: piece.text });
      else if (word === 'if' || word === 'with') nodes.push({ kind: word, pipeline: rest, ...this.#branches(pieces) });
      else if (word === 'define') this.#named.set(JSON.parse(rest), this.#body(pieces));
      else nodes.push({ kind: 'print', pipeline: piece.text });
    }
    if (ends.length > 0) throw new Error('an {{ end }} is missing');
    return nodes;
  }

  #branches(pieces: Piece[]) {
    const then = this.#parseBlock(pieces, ['else', 'end']);
    if (pieces.shift()?.text === 'end') return { then, otherwise: [] };
    return { then, otherwise: this.#body(pieces) };
  }

  #body(pieces: Piece[]): Node[] {
    const nodes = this.#parseBlock(pieces, ['end']);
    pieces.shift();
    return nodes;
  }

  #renderNodes(nodes: readonly Node[], dot: unknown, root: Scope): string {
    return nodes
      .map((node) => {
        if (node.kind === 'text') return node.text;
        const value = this.#evaluate(node.pipeline, dot, root);
        if (node.kind === 'print') return print(value);
        if (isEmpty(value)) return this.#renderNodes(node.otherwise, dot, root);
        return this.#renderNodes(node.then, node.kind === 'with' ? value : dot, root);
      })
      .join('');
  }

  #evaluate(pipeline: string, dot: unknown, root: Scope): unknown {
    const tokens = tokenize(pipeline);
    const value = this.#pipeline(tokens, dot, root);
    if (tokens.length > 0) throw new Error(`not understood: ${pipeline}`);
    return value;
  }

  #pipeline(tokens: string[], dot: unknown, root: Scope): unknown {
    let value = this.#command(tokens, dot, root, []);
    while (tokens[0] === '|') {
      tokens.shift();
      value = this.#command(tokens, dot, root, [value]);
    }
    return value;
  }

  #command(tokens: string[], dot: unknown, root: Scope, piped: readonly unknown[]): unknown {
    const name = tokens[0] ?? '';
    if (!/^[A-Za-z]/.test(name)) return this.#operand(tokens, dot, root);
    tokens.shift();
    const given: unknown[] = [];
    while (tokens.length > 0 && tokens[0] !== '|' && tokens[0] !== ')') given.push(this.#operand(tokens, dot, root));
    return this.#call(name, [...given, ...piped], root);
  }

  #operand(tokens: string[], dot: unknown, root: Scope): unknown {
    const token = tokens.shift() ?? '';
    if (token === '(') {
      const value = this.#pipeline(tokens, dot, root);
      if (tokens.shift() !== ')') throw new Error('a ) is missing');
      return value;
    }
    if (token.startsWith('"')) return JSON.parse(token);
    if (/^-?\d/.test(token)) return Number(token);
    if (token.startsWith('.')) return lookUp(dot, token);
    throw new Error(`not understood: ${token}`);
  }

  #call(name: string, args: readonly unknown[], root: Scope): unknown {
    const [first, second] = args;
    switch (name) {
      case 'include': {
        const named = this.#named.get(String(first));
        if (named === undefined) throw new Error(`no template is named ${first}`);
        return this.#renderNodes(named, second, root);
      }
      case 'toYaml':
        return stringify(first, { lineWidth: 0 }).trimEnd();
      case 'nindent':
        return `\n${String(second).replace(/^/gm, ' '.repeat(Number(first)))}`;
      case 'quote':
        return JSON.stringify(String(first));
      case 'default':
        return isEmpty(second) ? first : second;
      case 'required':
        if (isEmpty(second)) throw new Error(String(first));
        return second;
      case 'dig':
        return dig(args);
      case 'not':
        return isEmpty(first);
      case 'int':
        return Math.trunc(Number(first));
      case 'add':
        return Number(first) + Number(second);
      case 'div':
        return Math.trunc(Number(first) / Number(second));
      default:
        throw new Error(`no function is named ${name}`);
    }
  }
}

function splitActions(source: string): Piece[] {
  const pieces: Piece[] = [];
  let rest = source;
  for (let found = ACTION.exec(rest); found !== null; found = ACTION.exec(rest)) {
    const before = rest.slice(0, found.index);
    rest = rest.slice(found.index + found[0].length);
    if (found[3] !== undefined) rest = rest.trimStart();
    pieces.push({ text: found[1] === undefined ? before : before.trimEnd(), isAction: false });
    pieces.push({ text: found[2] ?? '', isAction: true });
  }
  return [...pieces, { text: rest, isAction: false }];
}

function tokenize(pipeline: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < pipeline.length) {
    const found = TOKEN.exec(pipeline);
    if (found?.[1] === undefined) throw new Error(`not understood: ${pipeline}`);
    tokens.push(found[1]);
  }
  return tokens;
}

/** What a path such as `.Values.image.tag` leads to; a value that is not there is undefined, one below it an error. */
function lookUp(dot: unknown, path: string): unknown {
  const names = path.split('.').filter((name) => name !== '');
  return names.reduce((value: unknown, name) => {
    if (value === null || typeof value !== 'object') throw new Error(`nothing has ${name} in ${path}`);
    return (value as Scope)[name];
  }, dot);
}

/** `dig "a" "b" default mapping`: the value at a.b, or the default where a name is missing. */
function dig(args: readonly unknown[]): unknown {
  const [mapping, otherwise, ...names] = args.toReversed();
  let value = mapping;
  for (const name of names.toReversed()) {
    if (value === null || typeof value !== 'object') throw new Error(`dig: nothing has ${name}`);
    if (!Object.hasOwn(value, String(name))) return otherwise;
    value = (value as Scope)[String(name)];
  }
  return value;
}

/** What Go's templates take for false. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 0 || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

function print(value: unknown): string {
  if (value === undefined || value === null || typeof value === 'object') throw new Error('nothing to print');
  return String(value);
}
