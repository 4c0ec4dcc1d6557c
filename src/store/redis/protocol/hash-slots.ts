/** Redis Cluster slots: the slot that a name hashes to, and the master that holds each slot. */
import { hash } from 'node:crypto';
import type { HostAndPort } from '../../../formats/store-address.ts';
import { UnexpectedReplyError } from './redis-errors.ts';

export const SLOTS = 16_384;
/** Hexadecimal digits of a layout digest. */
const LAYOUT_LENGTH = 8;
/** Fields of a line of CLUSTER NODES between the id and the slots: address, flags, master, ping, pong, epoch, link. */
const FIELDS_BEFORE_SLOTS = 7;
const SLOTS_PER_PART = 256;

/** CRC-16/XMODEM of each byte. */
const CRC_TABLE: Uint16Array = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc & 0xffff;
});

/** Returns a name's slot: by its hash tag (the text in the first pair of braces, unless empty), else by the whole name. */
export function slotOf(name: string): number {
  const open = name.indexOf('{');
  const close = open < 0 ? -1 : name.indexOf('}', open);
  const hashed = close > open + 1 ? name.slice(open + 1, close) : name;
  let crc = 0;
  for (const byte of Buffer.from(hashed)) crc = ((crc << 8) & 0xffff) ^ (CRC_TABLE[(crc >> 8) ^ byte] ?? 0);
  return crc % SLOTS;
}

/** Returns the part that a slot is in. Parts are so small that every master holds whole ones. */
export function partOf(slot: number): number {
  return Math.floor(slot / SLOTS_PER_PART);
}

/** For each part, a hash tag that puts a name into it: the smallest number whose slot is in the part. */
export const PART_TAGS: readonly string[] = (() => {
  const tags: string[] = [];
  for (let number = 0, found = 0; found < SLOTS / SLOTS_PER_PART; number += 1) {
    const part = partOf(slotOf(String(number)));
    if (tags[part] !== undefined) continue;
    tags[part] = String(number);
    found += 1;
  }
  return tags;
})();

/** Which master holds each slot, as one node of the cluster reports it. */
export interface SlotMap {
  /** Addresses by slot; undefined for a slot without a master. */
  readonly masters: readonly (string | undefined)[];
  /** Masters and replicas, by address. */
  readonly nodes: ReadonlyMap<string, HostAndPort>;
}

/**
 * Parses the reply to CLUSTER SLOTS. `repliedHost`: the host of the node that replied, for nodes whose host it leaves out.
 * @throws UnexpectedReplyError
 */
export function slotMapFrom(reply: unknown, repliedHost: string): SlotMap {
  if (!Array.isArray(reply)) throw new UnexpectedReplyError('CLUSTER SLOTS');
  const masters: (string | undefined)[] = new Array(SLOTS).fill(undefined);
  const nodes = new Map<string, HostAndPort>();
  for (const range of reply) {
    if (!Array.isArray(range)) throw new UnexpectedReplyError('CLUSTER SLOTS');
    const [first, last, ...servers] = range;
    if (!isSlot(first) || !isSlot(last) || servers.length === 0) throw new UnexpectedReplyError('CLUSTER SLOTS');
    const found = servers.map((server) => nodeFrom(server, repliedHost));
    for (const node of found) nodes.set(addressOf(node), node);
    const [master] = found;
    if (master !== undefined) masters.fill(addressOf(master), first, last + 1);
  }
  return { masters, nodes };
}

export function addressOf({ host, port }: HostAndPort): string {
  return `${host}:${port}`;
}

/**
 * A node's refusal to run a command that another node must run. An empty host stands for the host of the refusing node.
 * `try again`: of several names in a migrating slot, some have moved already.
 */
export type Redirection =
  | { readonly kind: 'moved' | 'ask'; readonly host: string; readonly port: number }
  | { readonly kind: 'try again' };

/** Returns undefined for every other error. */
export function redirectionFrom(error: unknown): Redirection | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error.message.startsWith('TRYAGAIN ')) return { kind: 'try again' };
  const [, kind, host = '', port] = /^(MOVED|ASK) \d+ (.*):(\d+)$/.exec(error.message) ?? [];
  return kind === undefined ? undefined : { kind: kind === 'ASK' ? 'ask' : 'moved', host, port: Number(port) };
}

/** Returns a digest of which master holds which slots. */
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
 * Reads from the reply to CLUSTER NODES what the replying node says about itself. `slots`: its id and its slots, including
 * migrating and importing ones.
 * @throws UnexpectedReplyError
 */
export function ownSlotsFrom(reply: unknown): { readonly slots: string; readonly isMigrating: boolean } {
  const [id, ...fields] = (typeof reply === 'string' && /^(.*\bmyself\b.*)$/m.exec(reply)?.[1]?.split(' ')) || [];
  if (id === undefined) throw new UnexpectedReplyError('CLUSTER NODES');
  const slots = fields.slice(FIELDS_BEFORE_SLOTS);
  return { slots: [id, ...slots].join(' '), isMigrating: slots.some((slot) => slot.includes('->-')) };
}

function nodeFrom(server: unknown, repliedHost: string): HostAndPort {
  const [host, port]: unknown[] = Array.isArray(server) ? server : [];
  if (typeof port !== 'number') throw new UnexpectedReplyError('CLUSTER SLOTS');
  // A node that must announce a host name and has none announces "?".
  return { host: typeof host === 'string' && host !== '' && host !== '?' ? host : repliedHost, port };
}

function isSlot(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < SLOTS;
}
