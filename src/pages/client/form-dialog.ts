/** Dialogs for actions, from descriptions. Each shows what went wrong if it fails. */
import { html } from 'htm/preact';
import { type ComponentChildren, createContext } from 'preact';
import { useContext, useState } from 'preact/hooks';
import type { Failure } from './api.ts';
import { actionButtons, Command, Field, inputValue, Problem, Select, type SelectOption } from './components.ts';
import { announce, Dialog } from './dialog.ts';
import { type CommandOptions, entryOf, localInputTime, tollgate } from './format.ts';
import { useAction } from './hooks.ts';
import { refreshAll } from './resources.ts';

interface FieldDescription {
  /** The member of the request's body. */
  readonly name: string;
  /** The option of the command line, if it has another name. */
  readonly option?: string;
  /** False: neither a member nor an option, such as an id in the path. */
  readonly isMember?: boolean;
  readonly label: string;
  readonly hint?: string;
  /** Default: text. `time`: ISO 8601 in the body, entered in the reader's zone. `list`: items between spaces or commas. */
  readonly kind?: 'number' | 'time' | 'list';
  /** The choices, if any other text is wrong. */
  readonly options?: readonly SelectOption[];
  /** The present value. The field is sent only if it is changed; an empty field unsets the member. */
  readonly current?: Member | undefined;
  /** What the form begins with, if not the present value. */
  readonly preset?: string | undefined;
  /** In place of an input. Items of a list are between spaces. */
  readonly control?: (props: ControlProps) => ComponentChildren;
  /** Texts of buttons that fill the field in, with what they enter. */
  readonly presets?: () => readonly (readonly [label: string, text: string])[];
  /** Attributes of the input, such as `required`. */
  readonly input?: Readonly<Record<string, string | number | boolean>>;
}

export interface ControlProps {
  readonly text: string;
  readonly enter: (text: string) => void;
  /** Why the value was refused. */
  readonly fault: string | undefined;
}

type Member = string | number | readonly string[] | null;

export interface FormInput {
  /** The text of each field. */
  readonly texts: Readonly<Record<string, string>>;
  /** The members that the user sets; null unsets one. */
  readonly change: Readonly<Record<string, Member>>;
}

export interface FormDescription<Result = unknown> {
  readonly title: string;
  /** Of the button that submits. */
  readonly label: string;
  readonly isDangerous?: boolean;
  /** Above the fields. */
  readonly text?: ComponentChildren;
  readonly fields?: readonly FieldDescription[];
  /** Below the fields. */
  readonly note?: (input: FormInput) => ComponentChildren;
  /** The words of the command line that does the same, without the options of the fields. */
  readonly command?: (texts: FormInput['texts']) => readonly (string | CommandOptions)[];
  readonly submit: (input: FormInput) => Promise<Result>;
  /** By the code of a refusal, the field that it is about. */
  readonly faultOf?: Readonly<Record<string, string>>;
  /** Another action, which a button offers; its form replaces this one. */
  readonly other?: FormDescription | false;
  /** Announced after success. */
  readonly said?: string;
  /** Returns a dialog with the result, which replaces the form. */
  show?(result: Result, onClose: () => void): ComponentChildren;
}

/** Performs one action, closes itself after it, and makes the page load its data again. */
export function FormDialog({ form, onClose }: { form: FormDescription; onClose: () => void }) {
  const { title, label, isDangerous, text, fields = [], note, command } = form;
  const [texts, setTexts] = useState<FormInput['texts']>(() =>
    Object.fromEntries(fields.map((field) => [field.name, field.preset ?? currentText(field)])),
  );
  const [result, setResult] = useState<unknown>();
  const [isOther, setIsOther] = useState(false);
  const change = changeOf(fields, texts);
  const { isBusy, failure, run } = useAction(async () => {
    try {
      const outcome = await form.submit({ texts, change });
      if (form.show) return setResult(outcome);
      announce(form.said ?? '');
      onClose();
    } finally {
      // Also after a failure: a refused reload is shown with its reasons.
      refreshAll();
    }
  });
  const faults = faultsOf(failure, form);
  if (isOther && form.other) return html`<${FormDialog} form=${form.other} onClose=${onClose} />`;
  if (result !== undefined) return form.show?.(result, onClose);
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form class="dialog-form" onSubmit=${run} aria-busy=${isBusy}>
      ${text && html`<p>${text}</p>`}
      ${fields.map((field) => {
        const enter = (text: string) => setTexts({ ...texts, [field.name]: text });
        const onInput = (event: Event) => enter(inputValue(event));
        if (field.control) return field.control({ text: texts[field.name] ?? '', enter, fault: faults?.[field.name] });
        const presets = field.presets?.().map(([label, text]) => [label, () => enter(text)] as const);
        return html`<${Field} label=${field.label} hint=${field.hint} fault=${faults?.[field.name]}><${Input} field=${field} text=${texts[field.name]} isWrong=${faults !== undefined && field.name in faults} onInput=${onInput} /><//>
          ${presets && html`<div class="presets">${actionButtons(presets)}</div>`}`;
      })}
      ${note?.({ texts, change })}
      ${failure && !faults && html`<${Problem} failure=${failure} />`}
      ${command && html`<${Command} line=${tollgate(...command(texts), optionsOf(fields, change))} />`}
      <div class="buttons">
        ${form.other && html`<button type="button" class="other" onClick=${() => setIsOther(true)}>${form.other.label}</button>`}
        <button type="button" autofocus=${isDangerous || fields.length === 0} onClick=${onClose}>Cancel</button>
        <button type="submit" class=${isDangerous ? 'primary danger' : 'primary'} disabled=${isBusy}>
          ${isBusy ? 'Working…' : label}
        </button>
      </div>
    </form>
  <//>`;
}

/** Whether the session may change something. The gateway enforces that; pages only hide what it would refuse. */
export const MayWrite = createContext(false);

/**
 * A button that opens a form, if the session may write. `form` is called with each rendering, so the open form shows
 * what was loaded since.
 */
export function FormButton(props: {
  label: string;
  form: () => FormDescription;
  isPrimary?: boolean;
  disabled?: boolean;
}) {
  const { label, form, isPrimary, disabled } = props;
  const [isOpen, setIsOpen] = useState(false);
  if (!useContext(MayWrite)) return null;
  return html`<button type="button" class=${isPrimary ? 'primary' : ''} disabled=${disabled} onClick=${() => setIsOpen(true)}>${label}</button>
    ${isOpen && html`<${FormDialog} form=${form()} onClose=${() => setIsOpen(false)} />`}`;
}

/**
 * Returns what is wrong with fields, by name, if nothing else is wrong: details are as in `name: must not be empty;
 * id: …`.
 */
function faultsOf(failure: Failure | undefined, { fields = [], faultOf = {} }: FormDescription) {
  const only = failure?.code === undefined ? undefined : entryOf(faultOf, failure.code);
  if (failure && only !== undefined) return { [only]: failure.detail };
  const parts = failure?.status === 422 ? failure.detail.split('; ') : [];
  const faults = parts.map((part) => {
    const [, path = '', what = ''] = /^([\w.]+): (.*)$/s.exec(part) ?? [];
    // `temporary_limit.until` and `suspended_until` are about `until`, `scopes.0` is about `scopes`.
    const field = fields.findLast(({ name }) => path.endsWith(name) || path.startsWith(`${name}.`));
    return [field?.name ?? '', what] as const;
  });
  const areAll = faults.length > 0 && faults.every(([name]) => name !== '');
  return areAll ? Object.fromEntries(faults) : undefined;
}

function Input(props: { field: FieldDescription; text: string; isWrong: boolean; onInput: (event: Event) => void }) {
  const { field, text: value, isWrong, onInput } = props;
  const { name, kind, options } = field;
  const input = { ...field.input, 'aria-invalid': isWrong };
  if (options) return html`<${Select} name=${name} options=${options} value=${value} onInput=${onInput} ...${input} />`;
  const ofKind = { number: { type: 'number', min: 1, step: 1 }, time: { type: 'datetime-local' }, list: {} };
  return html`<input name=${name} value=${value} onInput=${onInput} ...${kind && ofKind[kind]} ...${input} />`;
}

function currentText({ current, kind }: FieldDescription): string {
  const text = [current ?? ''].flat().join(' ');
  return kind === 'time' ? localInputTime(text) : text;
}

function changeOf(fields: readonly FieldDescription[], texts: FormInput['texts']): FormInput['change'] {
  const changed = fields.flatMap((field) => {
    const [member = null, former] = [texts[field.name] ?? '', currentText(field)].map((text) => memberOf(field, text));
    const isSame = JSON.stringify(member) === JSON.stringify(former);
    return field.isMember === false || isSame ? [] : [[field.name, member] as const];
  });
  return Object.fromEntries(changed);
}

function optionsOf(fields: readonly FieldDescription[], change: FormInput['change']): CommandOptions {
  return Object.fromEntries(fields.map(({ name, option = name }) => [option, change[name]]));
}

function memberOf({ kind, control }: FieldDescription, text: string): Member {
  const items = text.split(control ? ' ' : /[\s,]+/).filter(Boolean);
  if (kind === 'list') return items.length > 0 ? items : null;
  if (text === '') return null;
  if (kind === 'number') return Number(text);
  return kind === 'time' ? new Date(text).toISOString() : text;
}
