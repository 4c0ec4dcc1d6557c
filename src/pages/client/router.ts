/** Pages by path below the site's root, with the browser's history. Filters are in the query; secrets never are. */
import { useEffect, useState } from 'preact/hooks';
import { pathWith, ROOT } from './api.ts';

const NAVIGATED = 'navigated';

export interface Place {
  /** Decoded segments after the root. */
  readonly segments: readonly string[];
  readonly query: Readonly<Record<string, string | undefined>>;
}

/** Returns the address of a page. */
export function at(...segments: readonly string[]): string {
  return [ROOT, ...segments.map(encodeURIComponent)].join('/');
}

/** `text`: never a whole key. */
export const searchAddress = (text: string) => pathWith(at('search'), { text });

export function navigate(address: string): void {
  pushEntry(address);
  window.scrollTo(0, 0);
}

/** Changes filters in the address. `isSameStep`: without a new entry in the history, such as for the next letter typed. */
export function setQuery(
  change: Readonly<Record<string, string | undefined>>,
  { isSameStep = false }: { isSameStep?: boolean } = {},
): void {
  const address = pathWith(location.pathname, { ...place().query, ...change });
  if (!isSameStep) {
    pushEntry(address);
    return;
  }
  history.replaceState(history.state, '', address);
  window.dispatchEvent(new Event(NAVIGATED));
}

/** What an entry of the history keeps until the user comes back to it. */
interface KeptEntry {
  scrollY: number;
  /** By path in the admin API. */
  readonly lists: Map<string, unknown>;
}

const MAX_KEPT_ENTRIES = 20;
const keptEntries = new Map<number, KeptEntry>();
const entryNumber = (): number => history.state?.entry ?? 0;

export function keptEntry(): KeptEntry {
  const number = entryNumber();
  const kept = keptEntries.get(number) ?? { scrollY: 0, lists: new Map() };
  keptEntries.set(number, kept);
  keptEntries.delete(number - MAX_KEPT_ENTRIES);
  return kept;
}

function pushEntry(address: string): void {
  const entry = entryNumber() + 1;
  // The browser discards the entries ahead.
  for (const number of keptEntries.keys()) if (number >= entry) keptEntries.delete(number);
  history.pushState({ entry }, '', address);
  window.dispatchEvent(new Event(NAVIGATED));
}

const RESTORE_MS = 3000;

/** Keeps the scroll position of each entry, and restores it once the page is high enough: browsers do not wait for data. */
export function keepScroll(): void {
  history.scrollRestoration = 'manual';
  let restoring: AbortController | undefined;
  window.addEventListener('scroll', () => {
    if (restoring === undefined) keptEntry().scrollY = window.scrollY;
  });
  window.addEventListener('popstate', () => {
    restoring?.abort();
    const { scrollY } = keptEntry();
    const controller = new AbortController();
    restoring = controller;
    const { signal } = controller;
    const stop = () => controller.abort();
    const sized = new ResizeObserver(() => {
      window.scrollTo(0, scrollY);
      if (Math.abs(window.scrollY - scrollY) <= 1) stop();
    });
    signal.addEventListener('abort', () => {
      sized.disconnect();
      if (restoring === controller) restoring = undefined;
    });
    for (const event of ['wheel', 'touchstart', 'keydown', NAVIGATED]) window.addEventListener(event, stop, { signal });
    AbortSignal.timeout(RESTORE_MS).addEventListener('abort', stop);
    sized.observe(document.body);
  });
}

function place(): Place {
  const path = location.pathname.slice(ROOT.length);
  const segments = path.split('/').filter((segment) => segment !== '');
  return { segments: segments.map(decoded), query: Object.fromEntries(new URLSearchParams(location.search)) };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export function usePlace(): Place {
  const [current, setCurrent] = useState(place);
  useEffect(() => {
    const update = () => setCurrent(place());
    for (const event of [NAVIGATED, 'popstate']) window.addEventListener(event, update);
    return () => {
      for (const event of [NAVIGATED, 'popstate']) window.removeEventListener(event, update);
    };
  }, []);
  return current;
}

/** Makes plain links to pages of the site change the page without loading the document. */
export function followLinks(): void {
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const isModified = event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link || isModified || event.defaultPrevented || link.origin !== location.origin || link.target) return;
    if (link.hash && link.pathname === location.pathname) return;
    if (!link.pathname.startsWith(ROOT)) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}
