/** Everything that a store holds, as text: for tests that look for what must not be in it. */
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';

/** One text for each Redis key with its value, or for each row and each file of SQLite. No gateway may have that open. */
export async function readStoreContent(url: string): Promise<string[]> {
  return url.startsWith('sqlite:') ? readSqlite(url.slice('sqlite:'.length)) : readRedis(url);
}

async function readRedis(url: string): Promise<string[]> {
  const redis = new Redis(url, { protocol: 2 });
  try {
    const texts: string[] = [];
    for (const name of await redis.keys('*')) texts.push(JSON.stringify([name, await readValue(redis, name)]));
    return texts;
  } finally {
    redis.disconnect();
  }
}

async function readValue(redis: Redis, name: string): Promise<unknown> {
  const type = await redis.type(name);
  switch (type) {
    case 'string':
      return redis.get(name);
    case 'hash':
      return redis.hgetall(name);
    case 'set':
      return redis.smembers(name);
    case 'zset':
      return redis.zrange(name, '0', '-1', 'WITHSCORES');
    case 'stream':
      return redis.xrange(name, '-', '+');
    default:
      throw new Error(`${name} is a ${type}: how is it read?`);
  }
}

/** The files as well: they have what was deleted or overwritten a moment ago. */
async function readSqlite(file: string): Promise<string[]> {
  const folder = dirname(file);
  const names = (await readdir(folder)).filter((name) => name.startsWith(basename(file)));
  const files = await Promise.all(names.map((name) => readFile(join(folder, name), 'latin1')));
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
    const rows = tables.flatMap(({ name }) =>
      database
        .prepare(`SELECT * FROM "${name}"`)
        .all()
        .map((row) => JSON.stringify({ table: name, ...row })),
    );
    return [...rows, ...files];
  } finally {
    database.close();
  }
}
