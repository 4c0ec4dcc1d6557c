/** Returns the Levenshtein distance from `a` to `b`: the number of characters to insert, delete or replace. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** Returns the candidate that `word` probably means, if one is close enough to suggest. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const comparable = word.slice(0, 64).toLowerCase().replaceAll('-', '_');
  const ranked = candidates
    .map((candidate) => ({ candidate, edits: distance(comparable, candidate) }))
    .filter(({ candidate, edits }) => edits <= Math.ceil(candidate.length / 3))
    .sort((a, b) => a.edits - b.edits);
  return ranked[0]?.candidate;
}
