/** Numbers, times and commands as text. Times are in the reader's zone. */
import { PROBLEMS, type ProblemEntry } from '../../http/problems/table.ts';

const NUMBER = new Intl.NumberFormat('en');
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const DATE_TIME = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
});
const WITH_YEAR = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' });

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

export const count = (value: number) => NUMBER.format(value);
export const compact = (value: number) => COMPACT.format(value);

/** Returns "1 customer" or "2 customers". */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

const SHOWN_ID_LENGTH = 18;

/** Returns a long id without its middle: both ends tell similar ids apart. The whole one belongs in `title`. */
export function shortened(id: string): string {
  return id.length <= SHOWN_ID_LENGTH ? id : `${id.slice(0, 8)}…${id.slice(-7)}`;
}

/** What a limit is per. */
export const WINDOW_TEXTS = { hourly: 'hour', daily: 'day', monthly: 'month' } as const;

/** A limit; anything but a number is none. */
export const limitText = (limit: number | 'custom' | null) => (typeof limit === 'number' ? count(limit) : 'none');

export function localTime(ms: number): string {
  const isThisYear = new Date(ms).getFullYear() === new Date().getFullYear();
  return (isThisYear ? DATE_TIME : WITH_YEAR).format(ms);
}

/** Returns the time of day, such as "16:07:12". */
export const clockTime = (ms: number) => new Date(ms).toLocaleTimeString('en-GB');

export function utcTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** Returns the value of an input of type datetime-local; empty without a time. `time`: ISO 8601. */
export function localInputTime(time: string): string {
  const ms = Date.parse(time);
  if (Number.isNaN(ms)) return '';
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const toInput = (time: Date) => localInputTime(time.toISOString());

/** Ends that are often wanted, as values of an input of type datetime-local. */
export function nextEnds(): readonly (readonly [label: string, text: string])[] {
  const friday = new Date();
  friday.setHours(18, 0, 0, 0);
  while (friday.getDay() !== 5 || friday.getTime() <= Date.now()) friday.setDate(friday.getDate() + 1);
  return [
    ['until Friday 18:00', toInput(friday)],
    ['7 days', toInput(new Date(Date.now() + 7 * DAY_MS))],
  ];
}

const SECOND = ['second', 1, 's'] as const;
const UNITS = [['day', 86_400, 'days'], ['hour', 3600, 'h'], ['minute', 60, 'min'], SECOND] as const;

/** Returns "3 min. ago" or "in 2 days". */
export function relativeTime(ms: number): string {
  const seconds = Math.round((ms - Date.now()) / 1000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? SECOND;
  return RELATIVE.format(Math.round(seconds / size), unit);
}

/** Returns "41 s" or "12 min". */
export function duration(seconds: number): string {
  const [, size, unit] = UNITS.find(([, size]) => seconds >= 2 * size) ?? SECOND;
  return `${Math.round(seconds / size)} ${unit}`;
}

type OptionValue = string | number | boolean | null | undefined | readonly string[];

/** By name, with underscores; true: without a value; null: `--no-…`. The others are left out if they are empty. */
export type CommandOptions = Readonly<Record<string, OptionValue>>;

/** Returns the command line that does the same as a part of the console. Objects are options. */
export function tollgate(...words: readonly (string | number | CommandOptions)[]): string {
  const all = words.flatMap((word) => (typeof word === 'object' ? Object.entries(word).flatMap(optionWords) : [word]));
  return ['tollgate', ...all.map((word) => quoted(String(word)))].join(' ');
}

function optionWords([name, value]: [string, OptionValue]): (string | number)[] {
  if (value === undefined || value === '' || value === false) return [];
  const option = name.replaceAll('_', '-');
  if (value === null) return [`--no-${option}`];
  if (value === true) return [`--${option}`];
  return [value].flat().flatMap((each) => [`--${option}`, each]);
}

/** Returns a word for a shell. */
export function quoted(word: string): string {
  return /^[\w.:@/=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Returns the entry for a key that comes from data: `constructor` is none unless the object itself has it. */
export function entryOf<Value>(object: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

const UNKNOWN = {
  title: 'Refused',
  advice: 'The response to the client names the fault in its detail.',
  remedy: 'See `detail` in the response.',
};

/** The codes of refusals, with their titles. */
export const REFUSAL_TITLES = Object.entries<ProblemEntry>(PROBLEMS).map(([code, { title }]) => [code, title] as const);

/** Returns the title of a refusal, what an operator can do (`advice`), and what the client can do (`remedy`). */
export const refusalOf = (code: string) => ({ ...UNKNOWN, ...entryOf<ProblemEntry>(PROBLEMS, code) });
