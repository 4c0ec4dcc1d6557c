/**
 * Renders the part of Go's text/template and of Helm's functions that the chart uses: `if`, `with`, `range` over lists,
 * `else`, `end`, `define`, `$`, and pipelines of the functions below. Everything else is an error. A chart that is never rendered is not
 * tested, and neither Debian nor npm has a maintained package with Helm in it. With `helm` on PATH, chart.ts uses that.
 */
import { stringify } from 'yaml';

type Template = string[];

interface Scope {
  readonly dot: unknown;
  /** `$`: the data of the file or of the definition. */
  readonly root: unknown;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+|\.[\w.]*|[A-Za-z]\w*|\S/g;

const FUNCTIONS: Readonly<Record<string, (...args: unknown[]) => unknown>> = {
  toYaml: (value) => stringify(value, { lineWidth: 0 }).trimEnd(),
  nindent: (width, text) => `\n${String(text).replace(/^/gm, ' '.repeat(Number(width)))}`,
  quote: (value) => JSON.stringify(String(value)),
  default: (fallback, value) => (isEmpty(value) ? fallback : value),
  replace: (before, after, text) => String(text).replaceAll(String(before), () => String(after)),
  not: isEmpty,
  printf: (format, ...args) => String(format).replaceAll('%s', () => String(args.shift())),
  int: (value) => Math.trunc(Number(value)),
  add: (one, other) => Number(one) + Number(other),
  div: (dividend, divisor) => Math.trunc(Number(dividend) / Number(divisor)),
  required: (message, value) => (isEmpty(value) ? fail(String(message)) : value),
  /** `dig "a" "b" fallback mapping`: the value at a.b */
  dig: (...args) => {
    const [fallback, mapping] = args.splice(-2);
    return (
      args.reduce((inner, name) => (inner === undefined ? inner : member(inner, String(name))), mapping) ?? fallback
    );
  },
};

export class GoTemplates {
  readonly #definitions = new Map<string, Template>();

  /** Renders a file and keeps its definitions. @throws Error for syntax that is not supported, and from `required`. */
  render(source: string, data: unknown): string {
    // Text and actions by turns, once the trim markers are applied.
    const pieces = source
      .replace(/\{\{\/\*.*?\*\/\}\}/gs, '')
      .replace(/\s*\{\{-\s/g, '{{')
      .replace(/\s-\}\}\s*/g, '}}')
      .split(/\{\{|\}\}/);
    const text = this.#renderBlock(pieces, { dot: data, root: data }, true);
    return pieces.length === 0 ? text : fail(`unexpected {{ ${pieces[0]} }}`);
  }

  /** Takes pieces up to `else`, `end` or the end of the file. Renders them unless the branch is not taken. */
  #renderBlock(pieces: Template, scope: Scope, isTaken: boolean): string {
    let rendered = '';
    for (;;) {
      rendered += pieces.shift();
      const action = pieces[0]?.trim();
      if (action === undefined || action === 'else' || action === 'end') return isTaken ? rendered : '';
      pieces.shift();
      const [, word = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(action) ?? [];
      if (word === 'if' || word === 'with') {
        const value = isTaken && this.#evaluate(rest, scope);
        const holds = !isEmpty(value);
        rendered += this.#renderBlock(pieces, word === 'with' ? { ...scope, dot: value } : scope, isTaken && holds);
        if (pieces[0]?.trim() === 'else') {
          pieces.shift();
          rendered += this.#renderBlock(pieces, scope, isTaken && !holds);
        }
      } else if (word === 'range') {
        const items = isTaken ? (this.#evaluate(rest, scope) as unknown[]) : [];
        const body = [...pieces];
        this.#renderBlock(pieces, scope, false);
        for (const dot of items) rendered += this.#renderBlock([...body], { ...scope, dot }, true);
      } else if (word === 'define') {
        const body = [...pieces];
        this.#renderBlock(pieces, scope, false);
        this.#definitions.set(JSON.parse(rest), body.slice(0, body.length - pieces.length));
      } else {
        if (isTaken) rendered += print(this.#evaluate(action, scope));
        continue;
      }
      if (pieces.shift()?.trim() !== 'end') fail(`{{ ${action} }} has no end`);
    }
  }

  #evaluate(expression: string, { dot, root }: Scope): unknown {
    const tokens = expression.match(TOKEN) ?? [];
    const pipeline = (): unknown => {
      let value = command();
      while (tokens[0] === '|') {
        tokens.shift();
        value = command(value);
      }
      return value;
    };
    const command = (...piped: unknown[]): unknown => {
      const name = /^[A-Za-z]/.test(tokens[0] ?? '') ? tokens.shift() : undefined;
      const args: unknown[] = [];
      while (tokens[0] !== undefined && tokens[0] !== '|' && tokens[0] !== ')') args.push(operand());
      args.push(...piped);
      if (typeof args[0] === 'function') return args[0](...args.slice(1));
      if (name === undefined && args.length === 1) return args[0];
      if (name === 'include') return this.#include(String(args[0]), args[1]);
      if (name === 'tpl') return this.render(String(args[0]), args[1]);
      const call = FUNCTIONS[name ?? ''] ?? fail(`not a function: ${name} in ${expression}`);
      return call(...args);
    };
    const operand = (): unknown => {
      const token = tokens.shift() ?? '';
      if (token === '$') return root;
      if (token.startsWith('.')) return token.split('.').filter(Boolean).reduce(member, dot);
      if (token !== '(') return JSON.parse(token);
      const value = pipeline();
      return tokens.shift() === ')' ? value : fail(`a ) is missing in ${expression}`);
    };
    const value = pipeline();
    return tokens.length === 0 ? value : fail(`not supported: ${expression}`);
  }

  #include(name: string, dot: unknown): string {
    const template = this.#definitions.get(name) ?? fail(`no template is named ${name}`);
    return this.#renderBlock([...template], { dot, root: dot }, true);
  }
}

/** A missing member is undefined. @throws Error if there is nothing to have members. */
function member(value: unknown, name: string): unknown {
  if (value === null || typeof value !== 'object') fail(`nothing has the member ${name}`);
  return (value as Readonly<Record<string, unknown>>)[name];
}

function print(value: unknown): string {
  return value === undefined || value === null || typeof value === 'object' ? fail('nothing to print') : String(value);
}

/** What Go's templates take for false. */
function isEmpty(value: unknown): boolean {
  return !value || (typeof value === 'object' && Object.keys(value).length === 0);
}

function fail(message: string): never {
  throw new Error(message);
}
