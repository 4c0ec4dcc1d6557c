/**
 * What a PromQL expression names: metrics, the labels it matches and the values it wants of them, and the labels it groups
 * by. It reads the whole language as far as alerts and dashboards use it, and takes nothing on trust: an identifier that is
 * neither a known function nor a keyword is a metric, and what it cannot read is an error.
 */

export interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

export interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

/** Labels of a `by`, `without`, `on`, `ignoring` or `group_left`, and the selectors that must have them. */
export interface Grouping {
  readonly labels: readonly string[];
  readonly selectors: readonly Selector[];
}

export interface Vocabulary {
  readonly selectors: readonly Selector[];
  readonly groupings: readonly Grouping[];
}

const AGGREGATIONS = new Set('sum min max avg count topk bottomk quantile group stddev stdvar count_values'.split(' '));
const FUNCTIONS = new Set(
  'rate irate increase delta changes resets histogram_quantile absent absent_over_time clamp_min clamp_max label_replace max_over_time min_over_time avg_over_time sum_over_time last_over_time time timestamp vector scalar round ceil floor abs sort sort_desc'.split(
    ' ',
  ),
);
const OPERATOR_WORDS = new Set(['and', 'or', 'unless', 'bool', 'atan2']);
/** Their labels are those of the argument that follows. */
const AGGREGATION_MODIFIERS = new Set(['by', 'without']);
/** Their labels are those of both sides. */
const MATCHING_MODIFIERS = new Set(['on', 'ignoring', 'group_left', 'group_right']);

const TOKEN =
  /\s+|#[^\n]*|(?<word>[A-Za-z_:][A-Za-z0-9_:]*)|(?<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<number>(?:\d+(?:ms|[smhdwy]))+|\d*\.?\d+(?:e[+-]?\d+)?)|(?<sign>=~|!~|!=|==|<=|>=|[-+*/%^<>=(){}[\],:@])/y;

interface Token {
  readonly kind: 'word' | 'text' | 'number' | 'sign';
  readonly text: string;
}

/** @throws Error for what is not PromQL, or a part of it that is not known here. */
export function readPromql(expression: string): Vocabulary {
  const tokens = tokenize(expression);
  const selectors: Selector[] = [];
  const groupings: { labels: readonly string[]; selectors: readonly Selector[] }[] = [];
  const all: { labels: readonly string[] }[] = [];
  let at = 0;

  const peek = (): string | undefined => tokens[at]?.text;
  function take(expected?: string): Token {
    const token = tokens[at++];
    if (token === undefined) throw new Error(`${expression}: ends too early`);
    if (expected !== undefined && token.text !== expected)
      throw new Error(`${expression}: ${token.text}, not ${expected}`);
    return token;
  }

  /** Selectors from here to the bracket that closes, which is taken. */
  function readGroup(closing: string | undefined): Selector[] {
    const found: Selector[] = [];
    while (peek() !== closing) found.push(...readPart());
    if (closing !== undefined) take(closing);
    return found;
  }

  function readPart(): Selector[] {
    const token = take();
    if (token.kind === 'word') return readWord(token.text);
    if (token.text === '(') return readGroup(')');
    if (token.text === '[') return skipRange();
    if ([')', ']', '{', '}', '='].includes(token.text)) throw new Error(`${expression}: unexpected ${token.text}`);
    return [];
  }

  function readWord(word: string): Selector[] {
    if (OPERATOR_WORDS.has(word)) return [];
    if (word === 'offset') {
      if (take().kind !== 'number') throw new Error(`${expression}: an offset without a duration`);
      return [];
    }
    if (MATCHING_MODIFIERS.has(word)) {
      if (peek() === '(') all.push({ labels: readLabels() });
      return [];
    }
    if (AGGREGATIONS.has(word)) return readAggregation();
    if (FUNCTIONS.has(word)) {
      take('(');
      return readGroup(')');
    }
    if (peek() === '(') throw new Error(`${expression}: the function ${word} is not known here`);
    const selector = { metric: word, matchers: peek() === '{' ? readMatchers() : [] };
    selectors.push(selector);
    return [selector];
  }

  function readAggregation(): Selector[] {
    let labels: string[] = [];
    const readModifier = () => {
      if (!AGGREGATION_MODIFIERS.has(peek() ?? '')) return;
      take();
      labels = readLabels();
    };
    readModifier();
    take('(');
    const found = readGroup(')');
    readModifier();
    groupings.push({ labels, selectors: found });
    return found;
  }

  function readLabels(): string[] {
    const labels: string[] = [];
    take('(');
    while (peek() !== ')') {
      const token = take();
      if (token.kind !== 'word') throw new Error(`${expression}: ${token.text} is not a label`);
      labels.push(token.text);
      if (peek() !== ')') take(',');
    }
    take(')');
    return labels;
  }

  function readMatchers(): Matcher[] {
    const matchers: Matcher[] = [];
    take('{');
    while (peek() !== '}') {
      const label = take();
      const operator = take().text;
      const value = take();
      if (label.kind !== 'word' || !['=', '!=', '=~', '!~'].includes(operator) || value.kind !== 'text') {
        throw new Error(`${expression}: ${label.text}${operator}${value.text} is not a matcher`);
      }
      matchers.push({ label: label.text, operator, value: value.text.slice(1, -1) });
      if (peek() !== '}') take(',');
    }
    take('}');
    return matchers;
  }

  function skipRange(): Selector[] {
    while (peek() !== ']') {
      const token = take();
      if (token.kind !== 'number' && token.text !== ':') throw new Error(`${expression}: ${token.text} in a range`);
    }
    take(']');
    return [];
  }

  const found = readGroup(undefined);
  return { selectors, groupings: [...groupings, ...all.map(({ labels }) => ({ labels, selectors: found }))] };
}

function tokenize(expression: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < expression.length) {
    const from = TOKEN.lastIndex;
    const match = TOKEN.exec(expression);
    if (match === null) throw new Error(`${expression}: cannot be read from "${expression.slice(from)}" on`);
    for (const kind of ['word', 'text', 'number', 'sign'] as const) {
      const text = match.groups?.[kind];
      if (text !== undefined) tokens.push({ kind, text });
    }
  }
  return tokens;
}
