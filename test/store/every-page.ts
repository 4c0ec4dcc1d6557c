import type { Page } from '../../src/store/records.ts';

/** More pages than any list of these tests has. */
const MAX_PAGES = 10_000;

/** All items of a list, page by page; `between` runs before each page but the first. */
export async function everyPage<Item>(
  list: (cursor: string | undefined) => Promise<Page<Item>>,
  between: () => unknown = () => undefined,
): Promise<readonly (readonly Item[])[]> {
  const pages: (readonly Item[])[] = [];
  let cursor: string | undefined;
  do {
    if (pages.length > 0) await between();
    if (pages.length > MAX_PAGES) throw new Error('the list does not end');
    const page = await list(cursor);
    pages.push(page.items);
    cursor = page.next;
  } while (cursor !== undefined);
  return pages;
}
