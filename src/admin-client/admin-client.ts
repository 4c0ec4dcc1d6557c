/** HTTP client of the admin API, for Tollgate's own programs. Validates every response against a schema. */
import type { z } from 'zod';
import { PROBLEM, pageOf } from '../admin-api/responses.ts';
import { AdminRefusal, notTheAdminApi, unreachable } from './failures.ts';

interface AdminClientSettings {
  /** Origin of the admin listener, such as `http://127.0.0.1:8082`. */
  readonly url: string;
  /** The admin token or a JWT. Printable ASCII, because it is sent in a header. */
  readonly token: string;
  /** Where the token comes from, for error messages. */
  readonly tokenSource: string;
  /** Timeout of one call, including its response. */
  readonly timeoutMs?: number;
}

interface Content {
  readonly type: string;
  readonly text: string;
}

interface Listed {
  readonly id: string;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** The largest page size that the admin API allows. */
const MAX_PAGE_ITEMS = 1000;

/**
 * All methods reject with {@link AdminRefusal} for a problem document, and with {@link AdminUnreachableError} if the
 * admin API did not respond at all. Build paths with {@link pathOf}.
 */
export class AdminClient {
  readonly #settings: AdminClientSettings;
  readonly #timeoutMs: number;

  constructor(settings: AdminClientSettings) {
    this.#settings = settings;
    this.#timeoutMs = settings.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  }

  get<Schema extends z.ZodType>(schema: Schema, path: string): Promise<z.output<Schema>> {
    return this.#call(schema, 'GET', path);
  }

  /** Resolves to a response that is not JSON, and to the path of the page that its Link header names. */
  async getText(path: string): Promise<{ text: string; next: string | undefined }> {
    const { text, link } = await this.#send('GET', path);
    return { text, next: /^<(\/[^>]*)>; rel="next"$/.exec(link ?? '')?.[1] };
  }

  post<Schema extends z.ZodType>(schema: Schema, path: string, body: object): Promise<z.output<Schema>> {
    return this.#call(schema, 'POST', path, jsonContent(body));
  }

  /** Posts a text body with media type `type`. */
  postText<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    type: string,
    text: string,
  ): Promise<z.output<Schema>> {
    return this.#call(schema, 'POST', path, { type, text });
  }

  patch<Schema extends z.ZodType>(schema: Schema, path: string, body: object): Promise<z.output<Schema>> {
    return this.#call(schema, 'PATCH', path, jsonContent(body));
  }

  async delete(path: string): Promise<void> {
    await this.#send('DELETE', path);
  }

  /**
   * Returns all items of a list, or its first `maxItems` items. An item that moves to a later page during the calls is
   * listed once.
   */
  async list<Schema extends z.ZodType<Listed>>(
    schema: Schema,
    path: string,
    { query = {}, maxItems = Number.POSITIVE_INFINITY }: { query?: Record<string, string>; maxItems?: number } = {},
  ): Promise<z.output<Schema>[]> {
    const found = new Map<string, z.output<Schema>>();
    for await (const items of this.pages(schema, path, { query, maxItems })) {
      for (const item of items) if (!found.has(item.id)) found.set(item.id, item);
    }
    return [...found.values()];
  }

  /** Like {@link list}, but yields each page as it arrives. Only for lists whose items do not move between pages. */
  async *pages<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    { query = {}, maxItems = Number.POSITIVE_INFINITY }: { query?: Record<string, string>; maxItems?: number } = {},
  ): AsyncGenerator<z.output<Schema>[]> {
    const page = pageOf(schema);
    let left = maxItems;
    let cursor: string | null = null;
    do {
      const limit = String(Math.min(MAX_PAGE_ITEMS, left));
      const parameters = new URLSearchParams({ ...query, limit, ...(cursor !== null && { cursor }) });
      const { items, next_cursor: next } = await this.get(page, `${path}?${parameters}`);
      yield items;
      left -= items.length;
      cursor = next;
    } while (cursor !== null && left > 0);
  }

  async #call<Schema extends z.ZodType>(
    schema: Schema,
    method: string,
    path: string,
    content?: Content,
  ): Promise<z.output<Schema>> {
    const { status, text } = await this.#send(method, path, content);
    const document = parseJson(text);
    const checked = schema.safeParse(document);
    if (!checked.success) throw notTheAdminApi(this.#settings.url, describeIssues(status, checked.error));
    // The schemas only check, so this returns the response itself, with its members in their original order.
    return document as z.output<Schema>;
  }

  async #send(
    method: string,
    path: string,
    content?: Content,
  ): Promise<{ status: number; text: string; link: string | null }> {
    const { url, token } = this.#settings;
    let response: Response;
    let text: string;
    try {
      response = await fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          accept: 'application/json, application/problem+json',
          ...(content && { 'content-type': content.type }),
        },
        ...(content && { body: content.text }),
        // The admin API never redirects, and the token must be sent to this address only.
        redirect: 'manual',
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
      text = await response.text();
    } catch (error) {
      throw unreachable(url, error, this.#timeoutMs);
    }
    if (!response.ok) throw this.#refusal(response.status, text);
    return { status: response.status, text, link: response.headers.get('link') };
  }

  #refusal(status: number, text: string): Error {
    const { url, tokenSource } = this.#settings;
    const problem = PROBLEM.safeParse(parseJson(text));
    if (!problem.success) return notTheAdminApi(url, `status ${status} without a problem document`);
    if (problem.data.code !== 'unauthorized') return new AdminRefusal(problem.data);
    return new AdminRefusal(
      problem.data,
      `The token was taken from ${tokenSource}. It must be admin.token of the gateway at ${url}, or a JWT that it accepts.`,
    );
  }
}

/** Builds a path with each value encoded as one segment: ``pathOf`/admin/v1/keys/${id}` ``. */
export function pathOf(literals: TemplateStringsArray, ...segments: readonly string[]): string {
  return String.raw({ raw: literals }, ...segments.map(encodeSegment));
}

/** @throws RangeError for text that no encoding can make one segment: the URL would name another resource. */
function encodeSegment(segment: string): string {
  if (segment === '' || segment === '.' || segment === '..') throw new RangeError(`"${segment}" cannot be an id`);
  return encodeURIComponent(segment);
}

function jsonContent(body: object): Content {
  return { type: 'application/json', text: JSON.stringify(body) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function describeIssues(status: number, error: z.ZodError): string {
  const places = error.issues.map(({ path }) => path.join('.') || 'the body');
  return `status ${status}, but not the document expected (${[...new Set(places)].slice(0, 3).join(', ')})`;
}
