/** The frame of every page: the bar at the top, with a line about what does not respond, and the content. */
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Announcements } from './dialog.ts';
import { clockTime } from './format.ts';
import { useOutage } from './resources.ts';
import { at } from './router.ts';

interface ShellProps {
  /** Name of the site, for the title of the document. */
  readonly site: string;
  readonly brand: ComponentChildren;
  /** Those in the navigation. */
  readonly pages: readonly (readonly [name: string, title: string])[];
  /** Name of the page that is shown. */
  readonly current: string | undefined;
  readonly tools: ComponentChildren;
  /** The heading, and what is above it. */
  readonly heading: string;
  readonly above?: ComponentChildren;
  /** What the page is about, if pages with one heading may be about different things. */
  readonly subject?: string | undefined;
  readonly children: ComponentChildren;
}

export function Shell({ site, brand, pages, current, tools, heading, above, subject = heading, children }: ShellProps) {
  const outage = useOutage();
  const header = useRef<HTMLElement>(null);
  useEffect(() => {
    // The headers of tables stay below the bar, which has one or more lines.
    const setHeight = () =>
      document.documentElement.style.setProperty('--page-header', `${header.current?.offsetHeight ?? 0}px`);
    const sized = new ResizeObserver(setHeight);
    if (header.current) sized.observe(header.current);
    return () => sized.disconnect();
  }, []);
  useEffect(() => {
    document.title = `${heading} · ${site}`;
    // Screen readers read the new page's heading. A page that was just loaded begins at its top, as any document does.
    if (navigator.userActivation.hasBeenActive) document.querySelector('h1')?.focus({ preventScroll: true });
  }, [heading]);
  return html`
    <a class="skip" href="#main">Skip to the content</a>
    <header class="page-header" ref=${header}>
      <div class="top">
        ${brand}
        <nav aria-label="Pages">${pages.map(
          ([name, title]) =>
            html`<a href=${at(name)} aria-current=${name === current ? 'page' : undefined}>${title}</a>`,
        )}</nav>
        ${tools}
      </div>
      ${
        outage &&
        html`<p class="outage" role="alert">${outage.of === 'store' ? 'The store does not respond. What is read from it' : 'The gateway cannot be reached. Everything here'} is as of ${clockTime(outage.sinceMs)}; trying again.</p>`
      }
    </header>
    <main id="main" tabindex="-1" class=${outage ? `stale ${outage.of}` : ''} key=${subject}>
      ${above}<h1 tabindex="-1">${heading}</h1>${children}
    </main>
    <${Announcements} />`;
}
