/** Opens the embedded store's file, for one process at a time and with the current schema. */
import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../base/clock.ts';
import { StoreUnavailableError } from '../errors.ts';
import type { StoreOp } from '../observer.ts';
import type { Sql } from './sql.ts';

/**
 * SQL that migrates the schema from each version to the next; version 0 is an empty file. What a later version drops is
 * no longer created.
 */
const MIGRATIONS = [
  `
  CREATE TABLE customer (
    id TEXT PRIMARY KEY,
    plan TEXT NOT NULL,
    requests_per_hour TEXT,
    name TEXT,
    suspended TEXT,
    usage_reset_at TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE api_key (
    sha256 TEXT PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    customer TEXT NOT NULL,
    name TEXT,
    prefix TEXT,
    created_at TEXT,
    expires_at TEXT,
    revoked_at TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE window (
    customer TEXT PRIMARY KEY,
    epoch TEXT NOT NULL,
    used INTEGER NOT NULL,
    oldest INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    hold_end_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX window_by_newest ON window (newest);
  CREATE TABLE bucket (
    customer TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    units INTEGER NOT NULL,
    PRIMARY KEY (customer, bucket)
  ) STRICT, WITHOUT ROWID;
`,
  `
  ALTER TABLE api_key ADD COLUMN replaced_by TEXT;
  CREATE TABLE key_use (
    key_id TEXT PRIMARY KEY,
    used_at_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    "from" TEXT NOT NULL,
    action TEXT NOT NULL,
    customer TEXT,
    key_id TEXT,
    details TEXT
  ) STRICT;
`,
  `
  DROP INDEX IF EXISTS api_key_by_customer;
  CREATE INDEX api_key_by_customer ON api_key (customer, id);
`,
  `
  CREATE TABLE usage_hour (
    customer TEXT NOT NULL,
    hour INTEGER NOT NULL,
    code TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (customer, hour, code)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX usage_hour_by_hour ON usage_hour (hour);
  CREATE TABLE usage_day (
    customer TEXT NOT NULL,
    day INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    PRIMARY KEY (customer, day)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX usage_day_by_day ON usage_day (day);
  CREATE TABLE usage_total (
    hour INTEGER NOT NULL,
    plan TEXT NOT NULL,
    what TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (hour, plan, what)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE near_limit (
    customer TEXT PRIMARY KEY,
    percent INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX near_limit_by_percent ON near_limit (percent);
`,
  `
  CREATE TABLE notice (
    id TEXT PRIMARY KEY,
    customer TEXT NOT NULL,
    content TEXT NOT NULL,
    due_ms INTEGER,
    dead_ms INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX notice_by_due ON notice (due_ms);
  CREATE INDEX notice_by_death ON notice (dead_ms);
  CREATE INDEX notice_by_customer ON notice (customer);
  CREATE TABLE notice_mark (
    customer TEXT NOT NULL,
    mark TEXT NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (customer, mark)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE gone_endpoint (
    url TEXT PRIMARY KEY
  ) STRICT, WITHOUT ROWID;
`,
  `
  ALTER TABLE customer ADD COLUMN notify_url TEXT;
  CREATE TABLE notify_secret (
    customer TEXT PRIMARY KEY,
    secret TEXT NOT NULL,
    former TEXT,
    former_until_ms INTEGER
  ) STRICT, WITHOUT ROWID;
`,
  'ALTER TABLE customer ADD COLUMN created_at TEXT',
  'DROP TABLE IF EXISTS level_claim',
  'ALTER TABLE audit ADD COLUMN before TEXT',
  `
  CREATE TABLE portal_session (
    sha256 TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    customer TEXT NOT NULL,
    session TEXT NOT NULL,
    secret_ends_ms INTEGER NOT NULL,
    session_ends_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX portal_session_by_customer ON portal_session (customer);
  CREATE INDEX portal_session_by_end ON portal_session (secret_ends_ms);
  CREATE TABLE portal_write (
    id TEXT PRIMARY KEY,
    customer TEXT NOT NULL,
    at_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX portal_write_by_customer ON portal_write (customer, at_ms);
`,
  'ALTER TABLE api_key ADD COLUMN scopes TEXT; ALTER TABLE api_key ADD COLUMN allowed_addresses TEXT',
  `
  ALTER TABLE customer ADD COLUMN temporary_requests_per_hour TEXT;
  ALTER TABLE customer ADD COLUMN temporary_until TEXT;
  ALTER TABLE customer ADD COLUMN suspended_until TEXT;
`,
  'CREATE TABLE maintenance (id INTEGER PRIMARY KEY, record TEXT NOT NULL) STRICT',
  'ALTER TABLE usage_day RENAME COLUMN requests TO units; ALTER TABLE usage_day ADD COLUMN requests INTEGER NOT NULL DEFAULT 0',
  `
  CREATE TABLE grant_note (
    customer TEXT NOT NULL,
    id TEXT NOT NULL,
    granted INTEGER NOT NULL,
    returned INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    epochs TEXT NOT NULL,
    PRIMARY KEY (customer, id)
  ) STRICT, WITHOUT ROWID;
`,
  `
  CREATE TABLE deprecated_calls (
    day INTEGER NOT NULL,
    customer TEXT NOT NULL,
    route TEXT NOT NULL,
    count INTEGER NOT NULL,
    gone INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    PRIMARY KEY (day, customer, route)
  ) STRICT, WITHOUT ROWID;
`,
  `
  ALTER TABLE customer ADD COLUMN period_requests TEXT;
  ALTER TABLE customer ADD COLUMN period_anchor TEXT;
  ALTER TABLE customer ADD COLUMN period_reset_at TEXT;
  ALTER TABLE grant_note ADD COLUMN anchor TEXT;
  CREATE TABLE period (
    customer TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (customer, field)
  ) STRICT, WITHOUT ROWID;
`,
  `
  ALTER TABLE api_key ADD COLUMN requests_per_hour TEXT;
  ALTER TABLE api_key ADD COLUMN root TEXT;
  ALTER TABLE api_key ADD COLUMN usage_reset_at TEXT;
  ALTER TABLE window RENAME TO former_window;
  ALTER TABLE bucket RENAME TO former_bucket;
  CREATE TABLE window (
    customer TEXT NOT NULL,
    root TEXT NOT NULL,
    epoch TEXT NOT NULL,
    used INTEGER NOT NULL,
    oldest INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    hold_end_ms INTEGER NOT NULL,
    PRIMARY KEY (customer, root)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE bucket (
    customer TEXT NOT NULL,
    root TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    units INTEGER NOT NULL,
    PRIMARY KEY (customer, root, bucket)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO window SELECT customer, '', epoch, used, oldest, newest, hold_end_ms FROM former_window;
  INSERT INTO bucket SELECT customer, '', bucket, units FROM former_bucket;
  DROP TABLE former_window;
  DROP TABLE former_bucket;
  CREATE INDEX window_by_newest ON window (newest);
`,
  `
  CREATE TABLE failed_request (
    id TEXT PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    status INTEGER NOT NULL,
    code TEXT,
    source TEXT NOT NULL,
    customer TEXT,
    key_id TEXT,
    method TEXT NOT NULL,
    route TEXT NOT NULL,
    client TEXT,
    backend TEXT,
    upstream TEXT,
    failure TEXT,
    duration_ms REAL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX failed_request_by_time ON failed_request (at_ms, id);
  CREATE INDEX failed_request_by_request_id ON failed_request (request_id);
`,
];
const SCHEMA_VERSION = MIGRATIONS.length;
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_FULL = 13;
/** The code of a write beyond a disk quota: an I/O error, with its kind in the second byte. */
const SQLITE_IOERR_WRITE = 10 | (3 << 8);
/** Mask of the primary error code; the bytes above refine it. */
const PRIMARY_CODE = 0xff;
/** The file contains key hashes and the audit log. SQLite gives its `-wal` and `-shm` files the same mode. */
const OWNER_ONLY = 0o600;

/**
 * Runs one synchronous operation on the database and reports it to the observer. Rejects with StoreUnavailableError when
 * `operation` throws.
 */
export type RunOperation = <T>(op: StoreOp, operation: () => T) => Promise<T>;

/** What the parts of the embedded store share. */
export interface EmbeddedContext {
  readonly database: DatabaseSync;
  readonly sql: Sql;
  readonly run: RunOperation;
  /** Like `run`, as one transaction. */
  readonly transact: RunOperation;
  /** Its wall time is the store's time. */
  readonly clock: Pick<Clock, 'nowMs'>;
}

/**
 * Opens the file, creating it and its folder if missing. Locks it until it is closed or the process ends.
 *
 * `synchronous = NORMAL` with a write-ahead log: a process crash loses nothing; a power failure may lose the last
 * moments.
 * @throws StoreUnavailableError when another process uses the file, it cannot be opened or read, or its schema version
 * is unknown.
 */
export function openDatabase(file: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(file), { recursive: true });
    restrictToOwner(file);
    database = new DatabaseSync(file, { timeout: 0 });
    // Takes the lock now and keeps it: the in-memory counters of two processes would diverge unnoticed.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
    inTransaction(database, migrate);
    return database;
  } catch (error) {
    database?.close();
    throw new StoreUnavailableError(describe(file, error), { cause: error });
  }
}

/** Runs `work` as one transaction: all of it is stored or, when it throws, nothing. */
export function inTransaction<T>(database: DatabaseSync, work: (database: DatabaseSync) => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work(database);
    database.exec('COMMIT');
    return result;
  } catch (error) {
    // SQLite rolls back by itself on some errors, a full disk among them.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** Returns whether only a write failed, because the disk is full or read-only, and the database can still be read. */
export function isWriteRefusal(error: unknown): boolean {
  const code = errorCodeOf(error) ?? 0;
  const primary = code & PRIMARY_CODE;
  return primary === SQLITE_FULL || primary === SQLITE_READONLY || code === SQLITE_IOERR_WRITE;
}

/** Writes to the file without changing its data. */
export function rewriteHeader(database: DatabaseSync): void {
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
}

/** Returns the number of rows changed since the file was opened. */
export function totalChanges(database: DatabaseSync): number {
  return Number(database.prepare('SELECT total_changes() AS changes').get()?.changes);
}

function errorCodeOf(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : undefined;
}

/**
 * Restricts access to the file's owner. Must run before SQLite opens the file: other users could read a file that
 * SQLite creates until its mode is changed.
 */
function restrictToOwner(file: string): void {
  closeSync(openSync(file, 'a', OWNER_ONLY));
  try {
    chmodSync(file, OWNER_ONLY);
  } catch (error) {
    // The file belongs to another user, who is responsible for its mode.
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) throw error;
  }
}

function migrate(database: DatabaseSync): void {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version);
  if (version === SCHEMA_VERSION) return;
  if (version < 0 || version > SCHEMA_VERSION) {
    throw new Error(`its schema is version ${version}, this program knows version ${SCHEMA_VERSION}`);
  }
  for (const migration of MIGRATIONS.slice(version)) database.exec(migration);
  rewriteHeader(database);
}

function describe(file: string, error: unknown): string {
  if (errorCodeOf(error) === SQLITE_BUSY) {
    return `the store file ${file} is in use by another process: stop that one, or set another file in store.url`;
  }
  if (error instanceof Error && 'syscall' in error && error.syscall === 'mkdir') {
    return `cannot make the folder of the store file ${file}: set another file in store.url`;
  }
  return `cannot open the store file ${file}: ${error instanceof Error ? error.message : error}`;
}
