export type NonEmpty<Item> = readonly [Item, ...Item[]];

/** As `items.map(to)`, which forgets that there is at least one item. */
export function mapAll<Item, Result>(
  items: NonEmpty<Item>,
  to: (item: Item, index: number) => Result,
): NonEmpty<Result> {
  return items.map(to) as readonly Result[] as NonEmpty<Result>;
}
