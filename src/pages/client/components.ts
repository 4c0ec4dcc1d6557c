/**
 * Small components that all pages share. Those without state are functions, whose arguments the type checker checks: it does
 * not look into templates.
 */
import { html } from 'htm/preact';
import { type ComponentChildren, createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { Failure } from './api.ts';
import { announce } from './dialog.ts';
import { count, entryOf, localTime, relativeTime, utcTime } from './format.ts';
import { useWindowEvents } from './hooks.ts';
import type { Resource } from './resources.ts';
import { type Place, setQuery } from './router.ts';
import { maySend } from './whole-keys.ts';

/** `command`: the command line that shows the same. */
export function Panel(props: {
  title: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
  command?: string;
  wide?: boolean;
}) {
  return html`<section class=${props.wide ? 'panel wide' : 'panel'} aria-label=${props.title}>
    <header><h2>${props.title}</h2>
      <div class="actions">${props.actions}${props.command && html`<${CommandMenu} line=${props.command} />`}</div></header>
    ${props.children}
  </section>`;
}

export function badge(tone: 'good' | 'bad' | 'warn' | 'quiet', text: string) {
  return html`<span class=${`badge ${tone}`}>${text}</span>`;
}

/** Names and values. */
export function facts(items: readonly (readonly [string, ComponentChildren])[], kind: 'facts' | 'stats' = 'facts') {
  return html`<dl class=${kind}>${items.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** A time in the reader's zone, with UTC on hover. `at`: ISO 8601; other texts are shown unchanged. */
export function time(at: string, isRelative = false) {
  const ms = Date.parse(at);
  if (Number.isNaN(ms)) return html`<span>${at}</span>`;
  const title = isRelative ? `${localTime(ms)}, ${utcTime(ms)}` : utcTime(ms);
  return html`<time datetime=${at} title=${title}>${isRelative ? relativeTime(ms) : localTime(ms)}</time>`;
}

/** A text with its times as by {@link time}. */
export const withTimes = (text: string) =>
  text.split(/(\d{4}-\d\d-\d\dT[\d:.]+Z)/).map((part, index) => (index % 2 === 1 ? time(part) : part));

export const timeAgo = (at: string) => time(at, true);

/** Used share of a limit, as a bar with its number. `beyond`: whether more than the limit is refused. */
export function usageBar(usage: { used: number; limit: number; beyond?: 'refuse' | 'allow' }) {
  const { used, limit, beyond = 'refuse' } = usage;
  const percent = Math.floor((100 * used) / limit);
  const tone = percent >= 100 && beyond === 'refuse' ? 'bad' : percent >= 80 ? 'warn' : 'good';
  return html`<span class=${`usage ${tone}`}>
    <span class="gauge" aria-hidden="true"><span style=${{ width: `${Math.min(percent, 100)}%` }}></span></span>
    <span class="percent">${count(percent)} %</span>
    <span class="of">${count(used)} of ${count(limit)}</span>
  </span>`;
}

/** Waiting for data. Appears late, so that quick responses do not flicker. */
export function Loading({ what = 'Loading' }: { what?: string }) {
  return html`<p class="loading" role="status"><span class="spinner" aria-hidden="true"></span>${what}…</p>`;
}

export function Empty({ children }: { children: ComponentChildren }) {
  return html`<p class="empty">${children}</p>`;
}

/** What the readers of a site can do about a failed call, by the code of the problem. */
export const Advice = createContext<Readonly<Record<string, string>>>({});

/** A failed call: what happened, and what to do. */
export function Problem({ failure, retry }: { failure: Failure; retry?: (() => void) | undefined }) {
  const advice = entryOf(useContext(Advice), failure.code ?? '');
  return html`<div class="problem" role="alert">
    <strong>${failure.title}</strong>
    <p class="detail">${failure.detail}</p>
    ${advice && html`<p>${advice}</p>`}
    <p class="quiet">
      ${failure.request_id && html`Request <code>${failure.request_id}</code> `}
      ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
    </p>
  </div>`;
}

/** Shows loaded data. If a later call fails, its problem is shown above the former data; an outage is shown once, by main.ts. */
export function loaded<T>({ data, failure, reload }: Resource<T>, show: (data: T) => ComponentChildren) {
  const problem = failure && !failure.isOutage && html`<${Problem} failure=${failure} retry=${reload} />`;
  if (data === undefined) {
    if (failure?.isOutage) return html`<${Empty}>Not available now.<//>`;
    return problem ?? html`<${Loading} />`;
  }
  return html`${problem}${show(data)}`;
}

/** Copies a text. Returns whether that worked; if not, the text is selected where it is shown, if it is in a field. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // The clipboard exists only on https and loopback addresses.
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'visually-hidden';
  // Inside an open dialog, because everything outside it cannot get the focus.
  (document.querySelector('dialog[open]') ?? document.body).append(field);
  const focused = document.activeElement;
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}

/** A button that copies a text and says so. `text` is not kept anywhere. */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [result, setResult] = useState('');
  useEffect(() => setResult(''), [text]);
  const onClick = async () => setResult((await copy(text)) ? 'Copied' : 'Press Ctrl+C');
  return html`<button type="button" class="copy" onClick=${onClick}><span aria-live="polite">${result || label}</span></button>`;
}

/** The command line that does the same, or what the label says. */
export function Command({ line, label = 'The same on the command line' }: { line: string; label?: string }) {
  // Words are kept whole: browsers would break lines after the hyphens of an option.
  const words = line.split(' ').flatMap((word) => [' ', html`<span>${word}</span>`]);
  return html`<div class="command">
    <code tabindex="0" aria-label=${label}>${words}</code><${CopyButton} text=${line} />
  </div>`;
}

/** The command line, behind a button. */
export function CommandMenu({ line }: { line: string }) {
  return html`<${Menu} label="Command line" text=">_"><${Command} line=${line} /><//>`;
}

/** `fault`: why the value was refused. */
export function Field(props: {
  label: string;
  hint?: ComponentChildren;
  fault?: string | undefined;
  children: ComponentChildren;
}) {
  return html`<label class="field">
    <span>${props.label}</span>${props.children}${props.hint && html`<small>${props.hint}</small>`}
    ${props.fault && html`<small class="fault" role="alert">${props.fault}</small>`}
  </label>`;
}

/** The label defaults to the value. */
export type SelectOption = readonly [value: string, label?: string];

/** All other properties are attributes of the element. */
export function Select(props: { options: readonly SelectOption[]; value: string | undefined }) {
  const { options, value, ...attributes } = props;
  return html`<select ...${attributes}>${options.map(
    ([option, label = option]) => html`<option value=${option} selected=${option === value}>${label}</option>`,
  )}</select>`;
}

/** A field whose text is searched for with Enter. All other properties are attributes of the input. */
export function SearchForm(props: { text: string; onText: (text: string) => void; onSearch: (text: string) => void }) {
  const { text, onText, onSearch, ...attributes } = props;
  const onSubmit = (event: Event) => {
    event.preventDefault();
    // `text` may lack what was typed last.
    onSearch((event.currentTarget as HTMLFormElement).querySelector('input')?.value.trim() ?? '');
  };
  return html`<form class="search" onSubmit=${onSubmit}>
    <input type="search" value=${text} onInput=${(event: Event) => onText(inputValue(event))} ...${attributes} />
  </form>`;
}

const TYPING_PAUSE_MS = 300;

/** A filter in the address, changed when the user pauses. All other properties are attributes of the input. */
export function FilterField(props: { name: string; value: string | undefined }) {
  const { name, value = '', ...attributes } = props;
  const [text, setText] = useState(value);
  // Of this field. Another value comes from the history or a link, and replaces what was typed.
  const searched = useRef(value);
  const search = (wanted: string) => {
    if (wanted === searched.current) return;
    const isSameStep = wanted !== '' && searched.current !== '';
    searched.current = wanted;
    setQuery({ [name]: wanted }, { isSameStep });
  };
  useEffect(() => {
    if (value === searched.current) return;
    searched.current = value;
    setText(value);
  }, [value]);
  const latest = useRef(text);
  latest.current = text;
  const searchUnlessKey = async (wanted: string) => {
    const isSent = wanted === searched.current || (await maySend(wanted).catch(() => false));
    if (latest.current.trim() !== wanted) return;
    if (isSent) search(wanted);
    else announce('Not searched: it may be a whole key. The field in the top line finds keys by their hashes.');
  };
  useEffect(() => {
    const timer = setTimeout(() => void searchUnlessKey(text.trim()), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<${SearchForm} text=${text} onText=${setText} onSearch=${searchUnlessKey} ...${attributes} />`;
}

/** A filter in the address, with its choices. The empty value is none. */
export function queryFilter(name: string, label: string, options: readonly SelectOption[], query: Place['query']) {
  const onChange = (event: Event) => setQuery({ [name]: inputValue(event) });
  return html`<${Select} aria-label=${label} options=${options} value=${query[name] ?? ''} onChange=${onChange} />`;
}

interface MenuProps {
  readonly label: string;
  readonly text: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A button that shows more, until the focus leaves it. */
export function Menu({ label, text, children }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => menu.current?.removeAttribute('open');
  const onFocusOut = ({ relatedTarget }: FocusEvent) => menu.current?.contains(relatedTarget as Node | null) || close();
  return html`<details ref=${menu} class="menu" onFocusOut=${onFocusOut} onKeyDown=${({ key }: KeyboardEvent) => key === 'Escape' && close()}>
    <summary aria-label=${label} title=${label}>${text}</summary><div>${children}</div>
  </details>`;
}

export type Action = readonly [label: string, run: () => void, isDangerous?: boolean | undefined];

/** Buttons for actions. `of`: what they act on, for screen readers. */
export function actionButtons(actions: readonly Action[], of?: string) {
  return actions.map(([label, run, isDangerous]) => {
    const onClick = ({ currentTarget }: Event) => {
      // A menu is closed, and its button has the focus after the dialog that opens.
      const menu = (currentTarget as HTMLElement).closest<HTMLDetailsElement>('.menu');
      menu?.querySelector('summary')?.focus();
      menu?.removeAttribute('open');
      run();
    };
    return html`<button type="button" class=${isDangerous ? 'danger' : ''} aria-label=${of && `${label} ${of}`} onClick=${onClick}>${label}</button>`;
  });
}

const narrow = matchMedia('(max-width: 1100px)');

/** The actions on one row: buttons, or where these need more than a line, a menu. */
export function RowActions({ label, actions }: { label: string; actions: readonly Action[] }) {
  const [isNarrow, setIsNarrow] = useState(narrow.matches);
  useWindowEvents(() => setIsNarrow(narrow.matches), 'resize');
  const buttons = actionButtons(actions, label);
  return html`<span class="row-actions">${isNarrow ? html`<${Menu} label=${`Actions on ${label}`} text="⋯">${buttons}<//>` : buttons}</span>`;
}

export function inputValue(event: Event): string {
  return (event.currentTarget as HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement).value;
}
