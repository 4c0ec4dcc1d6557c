/**
 * Takes the code out of the address of a link, before anything else of the page runs: this module has no imports, and
 * index.html loads it first. The entry of the history is replaced, so that neither going back nor a bookmark has the code.
 */
export const linkCode = takeCode();

// A link that is opened in a tab of the portal changes the fragment alone, which loads nothing.
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#code=')) location.reload();
});

function takeCode(): string | undefined {
  const { hash, pathname } = location;
  if (hash === '') return undefined;
  history.replaceState(null, '', pathname);
  return new URLSearchParams(hash.slice(1)).get('code') ?? undefined;
}
