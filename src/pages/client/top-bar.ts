import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { clockTime } from './format.ts';

/**
 * What stays at the top of every page. Below it, an outage is told once for the whole page. `outageSinceMs`: of the last
 * response before it.
 */
export function TopBar(props: { outageSinceMs: number | undefined; children: ComponentChildren }) {
  const { outageSinceMs, children } = props;
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
      outageSinceMs !== undefined &&
      html`<p class="outage" role="alert">The gateway cannot be reached. Everything here is as of ${clockTime(outageSinceMs)}; trying again.</p>`
    }
  </div>`;
}
