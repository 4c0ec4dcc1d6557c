/** Modal dialogs, and messages that are shown for some seconds. */
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useWindowEvents } from './hooks.ts';

export function Dialog(props: { title: string; children: ComponentChildren; onClose: () => void }) {
  const { title, children, onClose } = props;
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => element.current?.showModal(), []);
  return html`<dialog ref=${element} aria-label=${title} onClose=${onClose}><h2>${title}</h2>${children}</dialog>`;
}

const ANNOUNCED = 'announced';
const VISIBLE_MS = 6000;

/** Shows a message for some seconds, also to screen readers. */
export function announce(message: string): void {
  window.dispatchEvent(new CustomEvent(ANNOUNCED, { detail: message }));
}

export function Announcements() {
  const [message, setMessage] = useState('');
  const timer = useRef(0);
  useWindowEvents((event) => {
    clearTimeout(timer.current);
    setMessage((event as CustomEvent<string>).detail);
    timer.current = window.setTimeout(() => setMessage(''), VISIBLE_MS);
  }, ANNOUNCED);
  return html`<div class="announcement" role="status">${message && html`<p>${message}</p>`}</div>`;
}
