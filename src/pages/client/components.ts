/**
 * Small components that all pages share. Those without state are functions, whose arguments the type checker checks: it does
 * not look into templates.
 */
import { html } from 'htm/preact';
import { type ComponentChildren, createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { Failure } from './api.ts';
import { count, entryOf, localTime, relativeTime, utcTime } from './format.ts';
import { useWindowEvents } from './hooks.ts';
import type { Resource } from './resources.ts';
import { type Place, setQuery } from './router.ts';

/** `command`: the command line that shows the same. */
export function Panel(props: {
  title: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
  command?: string;
  wide?: boolean;
}) {
  return html`<section class=${props.wide ? 'panel wide' : 'panel'} aria-label=${props.title}>
    <header><h2>${props.title}</h2>${props.actions && html`<div class="actions">${props.actions}</div>`}</header>
    ${props.children}
    ${props.command && html`<${Command} line=${props.command} />`}
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
    onSearch(text.trim());
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
  useEffect(() => {
    const timer = setTimeout(() => search(text.trim()), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<${SearchForm} text=${text} onText=${setText} onSearch=${search} ...${attributes} />`;
}

/** A filter in the address, with its choices. The empty value is none. */
export function queryFilter(name: string, label: string, options: readonly SelectOption[], query: Place['query']) {
  const onChange = (event: Event) => setQuery({ [name]: inputValue(event) });
  return html`<${Select} aria-label=${label} options=${options} value=${query[name] ?? ''} onChange=${onChange} />`;
}

const narrow = matchMedia('(max-width: 1100px)');

type RowAction = readonly [label: string, run: () => void];

/** The actions on one row: buttons, or where these need more than a line, a menu. */
export function RowActions({ label, actions }: { label: string; actions: readonly RowAction[] }) {
  const [isNarrow, setIsNarrow] = useState(narrow.matches);
  useWindowEvents(() => setIsNarrow(narrow.matches), 'resize');
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => menu.current?.removeAttribute('open');
  const buttons = actions.map(([action, run]) => {
    const onClick = () => {
      close();
      run();
    };
    return html`<button type="button" aria-label=${`${action} ${label}`} onClick=${onClick}>${action}</button>`;
  });
  if (!isNarrow) return html`<span class="row-actions">${buttons}</span>`;
  const onFocusOut = ({ relatedTarget }: FocusEvent) => menu.current?.contains(relatedTarget as Node | null) || close();
  return html`<details ref=${menu} class="row-menu" onFocusOut=${onFocusOut} onKeyDown=${({ key }: KeyboardEvent) => key === 'Escape' && close()}>
    <summary aria-label=${`Actions on ${label}`}>Actions</summary><div>${buttons}</div>
  </details>`;
}

export function inputValue(event: Event): string {
  return (event.currentTarget as HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement).value;
}
