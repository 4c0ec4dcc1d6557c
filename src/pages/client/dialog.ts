/** Modal dialogs, and messages that are shown for some seconds. */
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

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
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const show = (event: Event) => {
      clearTimeout(timer);
      setMessage((event as CustomEvent<string>).detail);
      timer = setTimeout(() => setMessage(''), VISIBLE_MS);
    };
    window.addEventListener(ANNOUNCED, show);
    return () => window.removeEventListener(ANNOUNCED, show);
  }, []);
  return html`<div class="announcement" role="status">${message && html`<p>${message}</p>`}</div>`;
}
