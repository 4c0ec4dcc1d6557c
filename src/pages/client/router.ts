/** Pages by path below the site's root, with the browser's history. Filters are in the query; secrets never are. */
import { useState } from 'preact/hooks';
import { pathWith, ROOT } from './api.ts';
import { useWindowEvents } from './hooks.ts';

const NAVIGATED = 'navigated';

export interface Place {
  /** Decoded segments after the root. */
  readonly segments: readonly string[];
  readonly query: Readonly<Record<string, string | undefined>>;
}

/** Returns the address of a page; of the first one without segments, or for an empty one. */
export function at(...segments: readonly string[]): string {
  return [ROOT, ...segments.filter(Boolean).map(encodeURIComponent)].join('/');
}

/** `text`: never a whole key. */
export const searchAddress = (text: string) => pathWith(at('search'), { text });

export function navigate(address: string): void {
  pushEntry(address);
  window.dispatchEvent(new Event(NAVIGATED));
  window.scrollTo(0, 0);
}

/** Changes filters in the address. `isSameStep`: without a new entry in the history, such as for the next letter typed. */
export function setQuery(change: Place['query'], { isSameStep = false } = {}): void {
  const address = pathWith(location.pathname, { ...place().query, ...change });
  if (isSameStep) history.replaceState(history.state, '', address);
  else pushEntry(address);
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
}

const RESTORE_MS = 3000;

/** Keeps the scroll position of each entry, and restores it once the page is high enough: browsers do not wait for data. */
export function keepScroll(): void {
  history.scrollRestoration = 'manual';
  let wanted: number | undefined;
  let timer = 0;
  const restore = () => {
    if (wanted === undefined) return;
    window.scrollTo(0, wanted);
    if (Math.abs(window.scrollY - wanted) <= 1) wanted = undefined;
  };
  new ResizeObserver(restore).observe(document.body);
  const stop = () => {
    wanted = undefined;
  };
  for (const event of ['wheel', 'touchstart', 'keydown', NAVIGATED]) window.addEventListener(event, stop);
  window.addEventListener('scroll', () => {
    if (wanted === undefined) keptEntry().scrollY = window.scrollY;
  });
  window.addEventListener('popstate', () => {
    wanted = keptEntry().scrollY;
    requestAnimationFrame(restore);
    clearTimeout(timer);
    timer = window.setTimeout(stop, RESTORE_MS);
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
  useWindowEvents(() => setCurrent(place()), NAVIGATED, 'popstate');
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
