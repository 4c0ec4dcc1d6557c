/** How a Redis Cluster divides names: each hashes to a slot, and each slot has one master. */
import { hash } from 'node:crypto';
import type { HostAndPort } from '../../store-address.ts';
import { UnexpectedReplyError } from './unexpected-reply.ts';

export const SLOTS = 16_384;
const LAYOUT_LENGTH = 8;
/** Address, flags, master, ping, pong, epoch and link of a line of CLUSTER NODES, after its id. */
const FIELDS_BEFORE_SLOTS = 7;
const SLOTS_OF_A_PART = 256;

/** CRC-16/XMODEM by byte. */
const CRC_TABLE: Uint16Array = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc & 0xffff;
});

/** Of what stands in the first pair of braces, where there is something, else of the whole name. */
export function slotOf(name: string): number {
  const open = name.indexOf('{');
  const close = open < 0 ? -1 : name.indexOf('}', open);
  const hashed = close > open + 1 ? name.slice(open + 1, close) : name;
  let crc = 0;
  for (const byte of Buffer.from(hashed)) crc = ((crc << 8) & 0xffff) ^ (CRC_TABLE[(crc >> 8) ^ byte] ?? 0);
  return crc % SLOTS;
}

/** Slots in pieces so small that each master holds whole ones. */
export function partOf(slot: number): number {
  return Math.floor(slot / SLOTS_OF_A_PART);
}

/** For each part the first number that hashes into it, for names to be put there. */
export const PART_TAGS: readonly string[] = (() => {
  const tags: string[] = [];
  for (let number = 0, found = 0; found < SLOTS / SLOTS_OF_A_PART; number += 1) {
    const part = partOf(slotOf(String(number)));
    if (tags[part] !== undefined) continue;
    tags[part] = String(number);
    found += 1;
  }
  return tags;
})();

/** Which master holds each slot, as one member of the cluster sees it. */
export interface SlotMap {
  /** Addresses by slot; undefined where nobody holds it. */
  readonly masters: readonly (string | undefined)[];
  /** Masters and replicas, by address. */
  readonly members: ReadonlyMap<string, HostAndPort>;
}

/**
 * The reply to CLUSTER SLOTS. `asked`: the host that gave it, which is meant where it names none.
 * @throws UnexpectedReplyError
 */
export function slotMapFrom(reply: unknown, asked: string): SlotMap {
  if (!Array.isArray(reply)) throw new UnexpectedReplyError('CLUSTER SLOTS');
  const masters: (string | undefined)[] = new Array(SLOTS).fill(undefined);
  const members = new Map<string, HostAndPort>();
  for (const range of reply) {
    if (!Array.isArray(range)) throw new UnexpectedReplyError('CLUSTER SLOTS');
    const [first, last, ...servers] = range;
    if (!isSlot(first) || !isSlot(last) || servers.length === 0) throw new UnexpectedReplyError('CLUSTER SLOTS');
    const found = servers.map((server) => memberFrom(server, asked));
    for (const member of found) members.set(addressOf(member), member);
    const [master] = found;
    if (master !== undefined) masters.fill(addressOf(master), first, last + 1);
  }
  return { masters, members };
}

export function addressOf({ host, port }: HostAndPort): string {
  return `${host}:${port}`;
}

/** Where another member sends us. The host is left out when it is the one that was asked. */
export type Redirection =
  | { readonly kind: 'moved' | 'ask'; readonly host: string; readonly port: number }
  | { readonly kind: 'try again' };

/** Undefined for every other error. What was redirected has not run. */
export function redirectionFrom(error: unknown): Redirection | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error.message.startsWith('TRYAGAIN ')) return { kind: 'try again' };
  const [, kind, host = '', port] = /^(MOVED|ASK) \d+ (.*):(\d+)$/.exec(error.message) ?? [];
  return kind === undefined ? undefined : { kind: kind === 'ASK' ? 'ask' : 'moved', host, port: Number(port) };
}

/** The same for the same masters with the same slots. */
export function layoutOf({ masters }: SlotMap): string {
  const starts = masters.flatMap((master, slot) =>
    master === masters[slot - 1] && slot > 0 ? [] : [`${slot} ${master}`],
  );
  return digestOf(starts);
}

export function digestOf(parts: readonly string[]): string {
  return hash('sha256', parts.join(), 'hex').slice(0, LAYOUT_LENGTH);
}

/**
 * What the member that gave this reply to CLUSTER NODES says of itself: its id and slots, those that it is giving away or
 * taking over included.
 * @throws UnexpectedReplyError
 */
export function ownSlotsFrom(reply: unknown): { readonly slots: string; readonly givesAway: boolean } {
  const [id, ...fields] = (typeof reply === 'string' && /^(.*\bmyself\b.*)$/m.exec(reply)?.[1]?.split(' ')) || [];
  if (id === undefined) throw new UnexpectedReplyError('CLUSTER NODES');
  const slots = fields.slice(FIELDS_BEFORE_SLOTS);
  return { slots: [id, ...slots].join(' '), givesAway: slots.some((slot) => slot.includes('->-')) };
}

function memberFrom(server: unknown, asked: string): HostAndPort {
  const [host, port]: unknown[] = Array.isArray(server) ? server : [];
  if (typeof port !== 'number') throw new UnexpectedReplyError('CLUSTER SLOTS');
  // "?" stands for a host name that the member was told to give and does not know.
  return { host: typeof host === 'string' && host !== '' && host !== '?' ? host : asked, port };
}

function isSlot(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < SLOTS;
}
