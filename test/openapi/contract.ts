/** An OpenAPI file as a contract: what it declares, and whether what was received is so. */
import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { parse } from 'yaml';

/** A part of the file. */
// biome-ignore lint/suspicious/noExplicitAny: the parts are as OpenAPI has them, and a wrong one fails the tests
type Part = any;

export interface Operation {
  /** In upper case. */
  readonly method: string;
  readonly path: string;
  /** As they stand in the file, `default` and ranges such as `4XX` included. */
  readonly statuses: readonly string[];
  readonly hasBody: boolean;
  readonly queryParameters: readonly string[];
}

export interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface Contract {
  /** Their URLs, with variables as they stand. */
  readonly servers: readonly string[];
  readonly operations: readonly Operation[];
  /** Values of `code` by the status that they come with. */
  readonly codes: ReadonlyMap<number, ReadonlySet<string>>;
  operation(method: string, path: string): Operation;
  /** What is wrong with an answer to an operation; nothing when it is declared so. */
  faultsOf(operation: Operation, received: Received): string[];
  /** The same for a response of the components, which belongs to no operation. */
  faultsOfResponse(name: string, received: Received): string[];
  acceptsBody(operation: Operation, body: unknown): boolean;
  acceptsParameter(operation: Operation, name: string, value: string): boolean;
}

const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options'];
const FORMATS = {
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  uri: (text: string) => URL.canParse(text),
};
const PROBLEM = 'application/problem+json';

/** `isOwnHeader`: the header fields (lower case) that an answer may have only where the file says so. */
export function readContract(name: string, isOwnHeader: (header: string) => boolean): Contract {
  const file = parse(readFileSync(new URL(`../../docs/openapi/${name}`, import.meta.url), 'utf8'));
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allErrors: true,
    formats: FORMATS,
  });
  ajv.addVocabulary(Object.keys(file));
  ajv.addSchema(closed(file), 'file');
  const validators = new Map<string, ValidateFunction>();

  const operations = Object.entries<Part>(file.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => method in item).map(
      (method): Operation => ({
        method: method.toUpperCase(),
        path,
        statuses: Object.keys(item[method].responses),
        hasBody: 'requestBody' in item[method],
        queryParameters: parametersOf(path, method).map((parameter) => at(parameter).name),
      }),
    ),
  );

  /** The part at a place, by its `$ref` where it has one. */
  function follow(pointer: string): string {
    const part = at(pointer);
    return '$ref' in part && Object.keys(part).length === 1 ? follow(part.$ref) : pointer;
  }

  function at(pointer: string): Part {
    const names = pointer.slice(2).split('/').map(decodeURIComponent);
    const part = names.reduce((whole, key) => whole?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], file);
    if (part === undefined) throw new Error(`${name} has no ${pointer}`);
    return part;
  }

  /** `isAnswer`: with no member that is not declared. */
  function validate(pointer: string, value: unknown, isAnswer: boolean): string[] {
    const key = `${pointer} ${isAnswer}`;
    const schema = { $ref: `file${pointer}`, ...(isAnswer && { unevaluatedProperties: false }) };
    const validator = validators.get(key) ?? ajv.compile(schema);
    validators.set(key, validator);
    if (validator(value)) return [];
    return (validator.errors ?? []).map(({ instancePath, message, params }) =>
      [instancePath, message, JSON.stringify(params)].join(' '),
    );
  }

  function faultsAt(response: string, { status, headers, text }: Received): string[] {
    const declared = at(response);
    return [
      ...headerFaults(response, declared.headers ?? {}, headers),
      ...contentFaults(response, declared.content, headers.get('content-type'), text),
    ].map((fault) => `${status}: ${fault}`);
  }

  function headerFaults(response: string, declared: Part, headers: Headers): string[] {
    const names = new Map(Object.keys(declared).map((header) => [header.toLowerCase(), header]));
    const undeclared = [...headers.keys()].filter((header) => isOwnHeader(header) && !names.has(header));
    const wrong = [...names].flatMap(([lower, header]) => {
      const pointer = follow(join(response, 'headers', header));
      const value = headers.get(lower);
      if (value === null) return at(pointer).required ? [`${header} is missing`] : [];
      return schemaFaults(join(pointer, 'schema'), value).map((fault) => `${header}: ${fault}`);
    });
    return [...undeclared.map((header) => `${header} is not declared`), ...wrong];
  }

  function contentFaults(response: string, declared: Part, type: string | null, text: string): string[] {
    if (declared === undefined) return text === '' ? [] : ['content where none is declared'];
    const bare = type?.split(';')[0] ?? '';
    if (bare in declared) return validate(join(response, 'content', bare, 'schema'), parsed(bare, text), true);
    return '*/*' in declared ? [] : [`content of type ${type}`];
  }

  /** Header fields and parameters are text, whatever they stand for. */
  function schemaFaults(pointer: string, text: string): string[] {
    const { type } = at(follow(pointer));
    return validate(pointer, type === 'integer' && /^-?\d+$/.test(text) ? Number(text) : text, false);
  }

  function parametersOf(path: string, method: string): string[] {
    const own = join('#', 'paths', path, method, 'parameters');
    const given: Part[] = file.paths[path][method].parameters ?? [];
    return given.map((_, index) => follow(`${own}/${index}`)).filter((parameter) => at(parameter).in === 'query');
  }

  return {
    servers: file.servers.map(({ url }: Part) => url),
    operations,
    codes: codesOf(file),
    operation(method, path) {
      const found = operations.find((each) => each.method === method && each.path === path);
      if (found === undefined) throw new Error(`${name} has no ${method} ${path}`);
      return found;
    },
    faultsOf({ method, path, statuses }, received) {
      const { status: code } = received;
      const status = [String(code), `${Math.floor(code / 100)}XX`, 'default'].find((each) => statuses.includes(each));
      if (status === undefined) return [`${received.status} is not declared: ${received.text}`];
      return faultsAt(follow(join('#', 'paths', path, method.toLowerCase(), 'responses', status)), received);
    },
    faultsOfResponse: (response, received) => faultsAt(join('#', 'components', 'responses', response), received),
    acceptsBody({ method, path }, body) {
      const content = join('#', 'paths', path, method.toLowerCase(), 'requestBody', 'content', 'application/json');
      return validate(join(content, 'schema'), body, false).length === 0;
    },
    acceptsParameter({ method, path }, parameter, value) {
      const place = parametersOf(path, method.toLowerCase()).find((each) => at(each).name === parameter);
      return place !== undefined && schemaFaults(join(place, 'schema'), value).length === 0;
    },
  };
}

/** A JSON Pointer as the fragment of a URI (RFC 6901 §6). */
function join(pointer: string, ...names: string[]): string {
  const escaped = names.map((name) => encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1')));
  return [pointer, ...escaped].join('/');
}

/**
 * The file with every object schema closed, so that members that it does not name are faults. Schemas that others
 * extend stay open: where they are used as they are, the answer as a whole is closed.
 */
function closed(file: Part): Part {
  const copy = structuredClone(file);
  const extended = new Set<string>();
  visit(copy, (part) => {
    if ('properties' in part && '$ref' in part) extended.add(part.$ref);
  });
  for (const [name, schema] of Object.entries<Part>(copy.components.schemas)) {
    const isExtended = extended.has(`#/components/schemas/${name}`);
    visit(schema, (part) => {
      if (part === schema && isExtended) return;
      if ('properties' in part && !('additionalProperties' in part)) part.unevaluatedProperties = false;
    });
  }
  return copy;
}

function codesOf(file: Part): Map<number, Set<string>> {
  const codes = new Map<number, Set<string>>();
  visit(file, (part) => {
    const { status, code } = part.properties ?? {};
    if (status?.const === undefined || code === undefined) return;
    const named: string[] = code.enum ?? [code.const];
    codes.set(status.const, new Set([...(codes.get(status.const) ?? []), ...named]));
  });
  return codes;
}

function visit(part: Part, look: (object: Part) => void): void {
  if (part === null || typeof part !== 'object') return;
  if (!Array.isArray(part)) look(part);
  for (const child of Object.values(part)) visit(child, look);
}

/** The `code` of a refusal. */
export function codeOf({ headers, text }: Received): string | undefined {
  return headers.get('content-type') === PROBLEM && text !== '' ? JSON.parse(text).code : undefined;
}

export async function receive(answering: Promise<Response>): Promise<Received> {
  const answer = await answering;
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

/** Lines of text, JSON or not, are checked as text. */
function parsed(mediaType: string, text: string): unknown {
  return mediaType.endsWith('json') && mediaType !== 'application/x-ndjson' ? JSON.parse(text) : text;
}
