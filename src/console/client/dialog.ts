/** Dialogs for actions. Each shows the command line that does the same, and what went wrong if it fails. */
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Failure, failureFrom } from './api.ts';
import { Command, inputValue, Problem } from './components.ts';
import { refreshAll } from './resources.ts';

export interface DialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
}

export function Dialog({ title, children, onClose }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => element.current?.showModal(), []);
  return html`<dialog ref=${element} aria-label=${title} onClose=${onClose}><h2>${title}</h2>${children}</dialog>`;
}

export interface ActionProps extends DialogProps {
  /** Of the button that submits. */
  readonly label: string;
  readonly isDangerous?: boolean;
  readonly command: string;
  /** Performs the action. Resolves to what is said afterwards, or to undefined if the dialog shows a result itself. */
  readonly submit: () => Promise<string | undefined>;
}

/** A form that performs one action, closes itself after it, and makes the page load its data again. */
export function ActionDialog(props: ActionProps) {
  const [isBusy, setIsBusy] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const onSubmit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setIsBusy(true);
    setFailure(undefined);
    try {
      const message = await props.submit();
      if (message === undefined) return;
      announce(message);
      props.onClose();
    } catch (error) {
      setFailure(failureFrom(error));
    } finally {
      // Also after a failure: a refused reload is shown with its reasons.
      refreshAll();
      setIsBusy(false);
    }
  };
  return html`<${Dialog} title=${props.title} onClose=${props.onClose}>
    <form class="dialog-form" onSubmit=${onSubmit} aria-busy=${isBusy}>
      ${props.children}
      ${failure && html`<${Problem} failure=${failure} />`}
      <${Command} line=${props.command} />
      <div class="buttons">
        <button type="button" onClick=${props.onClose}>Cancel</button>
        <button type="submit" class=${props.isDangerous ? 'primary danger' : 'primary'} disabled=${isBusy}>
          ${isBusy ? 'Working…' : props.label}
        </button>
      </div>
    </form>
  <//>`;
}

/** Returns the values of a form, and a function that binds an input to one of them. */
export function useForm<Values extends Readonly<Record<string, string>>>(initial: Values) {
  const [values, setValues] = useState(initial);
  const bind = (name: keyof Values & string) => ({
    name,
    value: values[name],
    onInput: (event: Event) => setValues({ ...values, [name]: inputValue(event) }),
  });
  return { values, bind };
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
