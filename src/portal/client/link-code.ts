/**
 * Takes the code out of the address of a link, before anything else of the page runs: this module has no imports, and
 * index.html loads it first. The entry of the history is replaced, so that neither going back nor a bookmark has the code.
 */
export const linkCode = takeCode();

function takeCode(): string | undefined {
  const { hash, pathname } = location;
  if (hash === '') return undefined;
  history.replaceState(null, '', pathname);
  return new URLSearchParams(hash.slice(1)).get('code') ?? undefined;
}
