/**
 * Requests that were refused or failed, so that support finds the cause of one by its request id. They are kept for some
 * hours, and only so many of them. Never contains a key or a path.
 */
import { blockOfCanonical } from '../formats/address-block.ts';
import { InvalidCursorError } from './errors.ts';
import { parseJsonObject } from './json-object.ts';
import { fieldsOf, textsFrom } from './record-fields.ts';
import type { Page } from './records.ts';
import { isTimeMs } from './usage-history.ts';

/** `upstream`: the response is the backend's. `check`: of the check listener. */
const SOURCES = ['gateway', 'upstream', 'check'] as const;

export interface FailedRequest {
  /** Unique, unlike `requestId`, which a client may choose. */
  readonly id: string;
  /** When the request ended, wall time of the store in ms. */
  readonly atMs: number;
  readonly requestId: string;
  readonly status: number;
  /** The problem code. Absent for a response of the backend, and if the client left. */
  readonly code?: string | undefined;
  readonly source: (typeof SOURCES)[number];
  readonly customer?: string | undefined;
  readonly keyId?: string | undefined;
  readonly method: string;
  /** The template, or `none`. */
  readonly route: string;
  /** The client's address. Absent if its connection was closed before. */
  readonly client?: string | undefined;
  readonly backend?: string | undefined;
  readonly upstream?: string | undefined;
  readonly failure?: string | undefined;
  /** Absent for input that never became a request. */
  readonly durationMs?: number | undefined;
}

/** What is kept. */
export interface FailedRequestBounds {
  readonly hours: number;
  readonly entries: number;
}

interface FailedRequestFilter {
  /** Store time in ms: older requests are left out. */
  readonly sinceMs: number;
  readonly customer?: string | undefined;
  readonly code?: string | undefined;
}

/** All methods reject with StoreUnavailableError. */
export interface FailedRequestStore {
  /**
   * Adds requests, and deletes what is out of bounds: see {@link surplusOf}. A call of which the outcome is unknown may be
   * repeated: a request is not added twice.
   */
  add(requests: readonly FailedRequest[], bounds: FailedRequestBounds): Promise<void>;
  /** Lists requests, the newest first. Rejects with {@link InvalidCursorError}. */
  list(filter: FailedRequestFilter, cursor: string | undefined, limit: number): Promise<Page<FailedRequest>>;
  /** Resolves to the newest requests with this id, the newest first. */
  find(requestId: string, sinceMs: number, limit: number): Promise<readonly FailedRequest[]>;
  /** Resolves to the store's time, wall time in ms. */
  nowMs(): Promise<number>;
}

/** The members that are texts, by their stored names. */
export const TEXTS = {
  id: 'id',
  requestId: 'request_id',
  code: 'code',
  source: 'source',
  customer: 'customer',
  keyId: 'key_id',
  method: 'method',
  route: 'route',
  client: 'client',
  backend: 'backend',
  upstream: 'upstream',
  failure: 'failure',
} as const;

const ID = /^[\w.-]{1,40}$/;

type StoredFields = { readonly [Name in (typeof TEXTS)[keyof typeof TEXTS]]?: string | null } & {
  readonly status?: unknown;
  readonly duration_ms?: unknown;
};

/** Returns the request; undefined if another program has written something else. */
export function failedRequestFrom(fields: StoredFields, atMs: number): FailedRequest | undefined {
  const { id, requestId, method, route, source: stored, ...texts } = textsFrom(TEXTS, fields);
  const { status, duration_ms: durationMs } = fields;
  const source = SOURCES.find((each) => each === stored);
  if (!requestId || !method || !route || !source) return undefined;
  if (!ID.test(id ?? '') || !Number.isInteger(status) || !isTimeMs(atMs) || !Number.isInteger(atMs)) return undefined;
  const duration = typeof durationMs === 'number' && { durationMs };
  return { id: id ?? '', atMs, requestId, status: Number(status), source, method, route, ...texts, ...duration };
}

/** Without the time. The id comes first: texts of the same time sort by it. */
export function formatFailedRequest(request: FailedRequest): string {
  const { status, durationMs } = request;
  return JSON.stringify({ ...fieldsOf(TEXTS, request), status, duration_ms: durationMs });
}

/** Returns undefined for a text that {@link formatFailedRequest} cannot have made. */
export function parseFailedRequest(text: string, atMs: number): FailedRequest | undefined {
  const fields = parseJsonObject(text) ?? {};
  const isText = (name: string) => fields[name] === undefined || typeof fields[name] === 'string';
  return Object.values(TEXTS).every(isText) ? failedRequestFrom(fields, atMs) : undefined;
}

/** Returns who is counted for a request: its customer, or else the block of the client's address. */
export function senderOf({ customer, client = '' }: Pick<FailedRequest, 'customer' | 'client'>): string {
  return customer ?? blockOfCanonical(client);
}

/**
 * Returns what to delete so that at most `room` requests remain, of which those with the most give up their oldest. So
 * nobody's requests push out those of others. All clients without a valid key together leave half of the room to
 * customers.
 */
export function surplusOf<Request extends Pick<FailedRequest, 'customer' | 'client'>>(
  newestFirst: readonly Request[],
  room: number,
): Request[] {
  const anonymous = newestFirst.filter(({ customer }) => customer === undefined);
  const ofCustomers = newestFirst.filter(({ customer }) => customer !== undefined);
  const anonymousRoom = Math.min(anonymous.length, Math.max(Math.floor(room / 2), room - ofCustomers.length));
  return [...beyondShares(anonymous, anonymousRoom), ...beyondShares(ofCustomers, room - anonymousRoom)];
}

function beyondShares<Request extends Pick<FailedRequest, 'customer' | 'client'>>(
  newestFirst: readonly Request[],
  room: number,
): Request[] {
  const bySender = [...Map.groupBy(newestFirst, senderOf).values()].toSorted((a, b) => a.length - b.length);
  let left = room;
  let share = 0;
  for (const [at, { length }] of bySender.entries()) {
    share = Math.max(1, Math.floor(left / (bySender.length - at)));
    if (length > share) break;
    left -= length;
  }
  const kept = new Set(bySender.flatMap((requests) => requests.slice(0, share)));
  let places = room;
  return newestFirst.filter((request) => !kept.has(request) || places-- <= 0);
}

/** A deletion makes room for this part of the bound at once, because it reads everything that is stored. */
const FREED_SHARE = 20;

/** Returns how many requests remain once there were too many. */
export function roomAfterDeletion({ entries }: FailedRequestBounds): number {
  return entries - Math.floor(entries / FREED_SHARE);
}

const CURSOR = /^(\d{1,16})\.([\w.-]{1,40})$/;

function cursorAfter({ atMs, id }: Pick<FailedRequest, 'atMs' | 'id'>): string {
  return `${atMs}.${id}`;
}

/** Returns the request after which the page begins. @throws InvalidCursorError */
export function requestBefore(cursor: string): Pick<FailedRequest, 'atMs' | 'id'> {
  const [, atMs, id] = CURSOR.exec(cursor) ?? [];
  if (id === undefined || !Number.isSafeInteger(Number(atMs))) throw new InvalidCursorError();
  return { atMs: Number(atMs), id };
}

/** Returns one page from at least one more request than it has, if there are more. */
export function failedRequestPage(requests: readonly FailedRequest[], limit: number): Page<FailedRequest> {
  const items = requests.slice(0, limit);
  const last = items.at(-1);
  return { items, next: requests.length > limit && last !== undefined ? cursorAfter(last) : undefined };
}
