/** Pagination: query parameters of a list, and the document of a page. */
import { z } from 'zod';
import type { Page } from '../store/store.ts';

/** Query parameters of every list. */
export const PAGE_PARAMETERS = {
  limit: z
    .string()
    .regex(/^(?:[1-9]\d{0,2}|1000)$/, 'must be an integer from 1 to 1000')
    .transform(Number)
    .default(100),
  cursor: z.string().min(1, 'must be the next_cursor of an earlier answer').optional(),
};

export const PAGE_QUERY = z.strictObject(PAGE_PARAMETERS);

/** Returns the response document of a page. `items`: the documents of the page's records. */
export function pageDocument(items: readonly object[], { next }: Pick<Page<unknown>, 'next'>) {
  return { items, next_cursor: next ?? null };
}
