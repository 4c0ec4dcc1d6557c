/** Pages of filtered lists: many records are read for few that match. */
import { setImmediate } from 'node:timers/promises';
import type { Page } from '../store/store.ts';

/** After this long, a page is sent as it is, and its cursor continues. So long lists show what was found so far. */
const MAX_PAGE_MS = 100;

export type ReadPage<Item> = (cursor: string | undefined, limit: number) => Promise<Page<Item>>;

/** Returns the only page of a list with this item, if there is one. */
export function pageOfOne<Item>(item: Item | undefined): Page<Item> {
  return { items: item === undefined ? [] : [item], next: undefined };
}

/**
 * Returns a function that reads on while a page is less than half full, for a bounded time. The first page is sent with
 * the first items, so that a client shows them at once. Other requests are served between two reads.
 */
export function readOn<Item>(read: ReadPage<Item>): ReadPage<Item> {
  return async (cursor, limit) => {
    const endMs = performance.now() + MAX_PAGE_MS;
    const items: Item[] = [];
    let next = cursor;
    do {
      const page = await read(next, limit - items.length);
      items.push(...page.items);
      next = page.next;
      if (next === undefined || items.length > (cursor === undefined ? 0 : limit / 2)) break;
      await setImmediate();
    } while (performance.now() < endMs);
    return { items, next };
  };
}
