/**
 * Portal sessions in Redis. A hash of the customer has them all, so that one script takes a code away, and deleting the
 * hash ends them all; in a cluster, it is in the slot of the customer's record. A string for each secret names the
 * customer, and expires with the secret: what it no longer names is not found, though the hash may still have it.
 */
import { MAX_PORTAL_SESSION_MS } from '../../../formats/portal.ts';
import {
  formatPortalSession,
  MAX_PORTAL_SESSIONS,
  PORTAL_CODE_MS,
  PORTAL_WRITES_MS,
  type PortalSessionStore,
  parsePortalSession,
} from '../../portal-sessions.ts';
import { type RedisChannel, sendAll } from '../connection/channel.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';

/** See add-session.lua. */
const STORED = /^\d+ (cookie|token) \d+ (.*)$/s;

/** Must be called before the first command is sent on the connection, because it defines commands. */
export function redisPortalSessions(connection: RedisChannel, names: RedisKeyNames): PortalSessionStore {
  const script = (file: string, keys: number) => connection.client.defineScript(new URL(file, import.meta.url), keys);
  const addSession = script('./add-session.lua', 2);
  const openSession = script('./open-session.lua', 1);
  const countWrite = script('./count-write.lua', 1);
  const customerOf = (sha256: string) =>
    connection.run('read_portal_session', (redis) => redis.get(names.portalSecret(sha256)));

  return {
    async add(kind, sha256, session, ttlMs) {
      const { customer } = session;
      const keys = [names.customerRecord(customer), names.portalSessions(customer)];
      const secretMs = kind === 'code' ? Math.min(PORTAL_CODE_MS, ttlMs) : ttlMs;
      const values = [sha256, kind, secretMs, ttlMs, formatPortalSession(session)];
      const limits = [MAX_PORTAL_SESSIONS, MAX_PORTAL_SESSION_MS];
      const reply = await connection.run('add_portal_session', () => addSession(...keys, ...values, ...limits));
      if (reply !== 1) return false;
      await sendAll(connection, 'add_portal_session', [['set', names.portalSecret(sha256), customer, 'PX', secretMs]]);
      return true;
    },

    async open(codeSha256, cookieSha256) {
      const customer = await customerOf(codeSha256);
      if (!customer) return undefined;
      const key = names.portalSessions(customer);
      const reply = await connection.run('open_portal_session', () => openSession(key, codeSha256, cookieSha256));
      if (!Array.isArray(reply)) return undefined;
      const [remainingMs, session] = reply;
      await sendAll(connection, 'open_portal_session', [
        ['set', names.portalSecret(cookieSha256), customer, 'PX', remainingMs],
        ['del', names.portalSecret(codeSha256)],
      ]);
      return parsePortalSession(customer, String(session));
    },

    async find(kind, sha256) {
      const customer = await customerOf(sha256);
      if (!customer) return undefined;
      const [stored] = await sendAll(connection, 'read_portal_session', [
        ['hget', names.portalSessions(customer), sha256],
      ]);
      const [, storedKind, session = ''] = STORED.exec(String(stored ?? '')) ?? [];
      return storedKind === kind ? parsePortalSession(customer, session) : undefined;
    },

    async end(sha256) {
      const customer = await customerOf(sha256);
      if (!customer) return;
      await sendAll(connection, 'end_portal_session', [
        ['hdel', names.portalSessions(customer), sha256],
        ['del', names.portalSecret(sha256)],
      ]);
    },

    async endAll(customer) {
      await sendAll(connection, 'end_portal_session', [['del', names.portalSessions(customer)]]);
    },

    async countWrite(customer, id, limit) {
      const key = names.portalWrites(customer);
      return Number(await connection.run('count_portal_write', () => countWrite(key, id, limit, PORTAL_WRITES_MS)));
    },
  };
}
