/** Checks the form of Redis' replies. */
import { ReplyError } from 'ioredis';
import { CUSTOMER_FIELDS, customerRecordFrom, type Fields, KEY_FIELDS, keyRecordFrom } from '../../record-fields.ts';
import type { CustomerRecord, KeyRecord } from '../../store.ts';
import { UnexpectedReplyError } from '../protocol/unexpected-reply.ts';
import type { Command, RedisClient } from './client.ts';

/** The most commands that are sent at once. */
const PIPELINE_COMMANDS = 1000;

/**
 * Resolves to the replies to the commands, in order; undefined for a Redis key of a wrong type, which another program
 * wrote. Rejects with any other error.
 */
export async function pipelined(redis: RedisClient, commands: readonly Command[]): Promise<unknown[]> {
  const replies = await redis.batch(commands);
  return replies.map(([error, reply]) => {
    if (error === null) return reply;
    if (isWrongTypeError(error)) return undefined;
    throw error;
  });
}

export function isWrongTypeError(error: unknown): boolean {
  return error instanceof Error && error instanceof ReplyError && error.message.startsWith('WRONGTYPE');
}

/** None of the fields is there: a hash of others, or a record that was deleted since its name was found. */
export function isEmpty(fields: object | undefined): boolean {
  return fields !== undefined && Object.values(fields).every((value) => value === null);
}

/** In pieces that one pipeline may hold. */
export function* pieces<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let start = 0; start < items.length; start += PIPELINE_COMMANDS) {
    yield items.slice(start, start + PIPELINE_COMMANDS);
  }
}

/** Returns the record from the values of KEY_FIELDS; undefined when there are none, or a required field is unset. */
export function keyRecordFromReply(values: unknown): KeyRecord | undefined {
  return values === null || values === undefined ? undefined : keyRecordFrom(named(KEY_FIELDS, values));
}

/**
 * Returns the record from the values of CUSTOMER_FIELDS; undefined when there are none, or a required field is unset.
 */
export function customerRecordFromReply(id: string, values: unknown): CustomerRecord | undefined {
  return values === null || values === undefined ? undefined : customerRecordFrom(id, named(CUSTOMER_FIELDS, values));
}

/** Returns the values by field name. @throws UnexpectedReplyError when `values` does not fit `names`. */
export function named<Name extends string>(names: readonly Name[], values: unknown): Fields<Name> {
  const isFieldList =
    Array.isArray(values) &&
    values.length === names.length &&
    values.every((value) => value === null || typeof value === 'string');
  if (!isFieldList) throw new UnexpectedReplyError('HMGET');
  return Object.fromEntries(names.map((name, index) => [name, values[index]])) as Fields<Name>;
}
