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
  history.pushState(null, '', address);
  window.dispatchEvent(new Event(NAVIGATED));
  window.scrollTo(0, 0);
}

/** Changes filters in the address without a new entry in the history. */
export function setQuery(change: Readonly<Record<string, string | undefined>>): void {
  history.replaceState(null, '', pathWith(location.pathname, { ...place().query, ...change }));
  window.dispatchEvent(new Event(NAVIGATED));
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
