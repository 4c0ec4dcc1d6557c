import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Outage } from './api.ts';
import { clockTime } from './format.ts';

/** What stays at the top of every page. Below it, an outage is told once for the whole page. */
export function TopBar({ outage, children }: { outage: Outage | undefined; children: ComponentChildren }) {
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // The headers of tables stay below the bar, which has one or more lines.
    const setHeight = () => document.documentElement.style.setProperty('--bar', `${bar.current?.offsetHeight ?? 0}px`);
    const sized = new ResizeObserver(setHeight);
    if (bar.current) sized.observe(bar.current);
    return () => sized.disconnect();
  }, []);
  return html`<div class="bar" ref=${bar}>
    <div class="top">${children}</div>
    ${
      outage &&
      html`<p class="outage" role="alert">${outage.of === 'store' ? 'The store does not respond. What is read from it' : 'The gateway cannot be reached. Everything here'} is as of ${clockTime(outage.sinceMs)}; trying again.</p>`
    }
  </div>`;
}
