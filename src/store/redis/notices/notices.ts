/**
 * Notices in Redis. One hash per customer, in the customer's slot, has its marks and its notices; scripts change it. Two
 * sorted sets are indexes over all customers: pending notices by the time of their next attempt, and dead notices.
 *
 * In a cluster the indexes are in other slots than the hashes, so no script can change both. An index entry is added
 * before the data it refers to, and removed after it. A reader removes entries without data.
 */
import { MAX_DEAD_NOTICES, type Marks, type NoticeState, type NoticeStore, type StoredNotice } from '../../notices.ts';
import type { StoreOp } from '../../observer.ts';
import { type RedisChannel, sendAll, sendEach } from '../connection/channel.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';

/** An index entry that is added before its notice is not due for this long, so that no reader removes it meanwhile. */
const CLAIM_MS = 10_000;
/** Members of an index are `<notice id> <customer>`. */
const MEMBER = /^(\S+) (\S+)$/;

/** Must be called before the first command is sent on the channel, because it defines commands. */
export function redisNotices(channel: RedisChannel, names: RedisKeyNames): NoticeStore {
  const script = (file: string) => channel.client.defineScript(new URL(`./${file}`, import.meta.url), 1);
  const addOnce = script('add-once.lua');
  const extendMarks = script('extend-marks.lua');
  const updateNotice = script('../records/update-record.lua');
  const takeDue = script('take-due.lua');
  const schedule = script('schedule.lua');
  const indexes = { pending: names.pendingNotices, dead: names.deadNotices };
  const gone = names.goneEndpoints;

  const extend = async ({ customer, marks, untilMs }: Marks) => {
    const name = names.notices(customer);
    return (await channel.run('claim_notice', () => extendMarks(name, untilMs, ...marks))) === 1;
  };

  /** Resolves to the notices of these index entries. Removes entries without a notice. */
  async function read(op: StoreOp, state: NoticeState, members: readonly string[]): Promise<StoredNotice[]> {
    const entries = members.map(entryOf);
    const contents = await sendEach(channel, op, entries, ({ customer, id }) => [
      'hget',
      names.notices(customer),
      fieldOf(id),
    ]);
    const stale = members.filter((_, at) => typeof contents[at] !== 'string');
    // A pending entry that is not due may belong to a notice that is being stored now.
    if (stale.length > 0 && (state === 'dead' || op === 'take_notices')) {
      await channel.run(op, (redis) => redis.zrem(indexes[state], ...stale));
    }
    return entries.flatMap((entry, at) => {
      const content = contents[at];
      return typeof content === 'string' ? [{ ...entry, content }] : [];
    });
  }

  async function dropOldestDead(): Promise<void> {
    const op = 'settle_notice';
    const surplus = (await channel.run(op, (redis) => redis.zcard(indexes.dead))) - MAX_DEAD_NOTICES;
    if (surplus <= 0) return;
    const members = await channel.run(op, (redis) =>
      redis.zrangebyscore(indexes.dead, '-inf', '+inf', 'LIMIT', 0, surplus),
    );
    for (const notice of await read(op, 'dead', members)) await replace(notice, undefined);
  }

  async function replace(notice: StoredNotice, next: Parameters<NoticeStore['replace']>[1]): Promise<boolean> {
    const op = 'settle_notice';
    const member = memberOf(notice);
    // An empty content deletes the notice.
    const { dueInMs, isDead = false, content = '' } = next ?? {};
    // Keeps the time of an existing entry: if another gateway has changed the notice meanwhile, its time must stay.
    if (dueInMs !== undefined) await channel.run(op, () => schedule(indexes.pending, member, CLAIM_MS, 1));
    if (isDead) await channel.run(op, () => schedule(indexes.dead, member, 0, 1));
    const [name, field] = [names.notices(notice.customer), fieldOf(notice.id)];
    const replaced = await channel.run(op, () =>
      updateNotice(name, 1, field, notice.content, 1, field, content, field),
    );
    if (replaced === null) return false;
    if (dueInMs === undefined) await channel.run(op, (redis) => redis.zrem(indexes.pending, member));
    else await channel.run(op, () => schedule(indexes.pending, member, dueInMs, 0));
    if (isDead) await dropOldestDead();
    else await channel.run(op, (redis) => redis.zrem(indexes.dead, member));
    return true;
  }

  return {
    async addOnce({ customer, marks, untilMs, notice }) {
      // Most calls end here, without a change of the index.
      if (await extend({ customer, marks: [marks[0]], untilMs })) return false;
      const op = 'claim_notice';
      const member = memberOf({ customer, ...notice });
      const args = [notice.id, notice.content, untilMs, ...marks];
      await channel.run(op, () => schedule(indexes.pending, member, CLAIM_MS, 0));
      const isNew = (await channel.run(op, () => addOnce(names.notices(customer), ...args))) === 1;
      if (isNew) await channel.run(op, () => schedule(indexes.pending, member, 0, 0));
      else await channel.run(op, (redis) => redis.zrem(indexes.pending, member));
      return isNew;
    },

    extend,

    async takeDue(count, hiddenMs) {
      const members = await channel.run('take_notices', () => takeDue(indexes.pending, count, hiddenMs));
      return read('take_notices', 'pending', textsFrom(members));
    },

    replace,

    async list(state, offset, limit) {
      const members = await channel.run('read_notices', (redis) =>
        redis.zrangebyscore(indexes[state], '-inf', '+inf', 'LIMIT', offset, limit + 1),
      );
      const items = await read('read_notices', state, members.slice(0, limit));
      return { items, nextOffset: members.length > limit ? offset + limit : undefined };
    },

    async counts() {
      const [pending, dead] = await sendAll(channel, 'read_notices', [
        ['zcard', indexes.pending],
        ['zcard', indexes.dead],
      ]);
      return { pending: Number(pending ?? 0), dead: Number(dead ?? 0) };
    },

    async goneEndpoints() {
      return new Set(Object.keys(await channel.run('read_notices', (redis) => redis.hgetall(gone))));
    },

    async setGone(url, isGone) {
      await channel.run('settle_notice', async (redis) => {
        await (isGone ? redis.hset(gone, url, new Date().toISOString()) : redis.hdel(gone, url));
      });
    },
  };
}

function memberOf({ id, customer }: Pick<StoredNotice, 'id' | 'customer'>): string {
  return `${id} ${customer}`;
}

/** Another program may have written other entries: they refer to nothing. */
function entryOf(member: string): Pick<StoredNotice, 'id' | 'customer'> {
  const [, id = '', customer = ''] = MEMBER.exec(member) ?? [];
  return { id, customer };
}

function fieldOf(id: string): string {
  return `notice:${id}`;
}

function textsFrom(reply: unknown): string[] {
  if (!Array.isArray(reply)) throw new UnexpectedReplyError('take-due');
  return reply.map(String);
}
