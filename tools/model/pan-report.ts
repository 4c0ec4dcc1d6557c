/** Reads the report of a verifier that SPIN generated (pan). */
import type { Property } from './runs.ts';

export interface PanReport {
  readonly states: number;
  readonly depth: number;
  /** The violated property, or the failure as pan names it. */
  readonly violation: Property | string | undefined;
  /** Why states may be missing; undefined if every reachable state was explored. */
  readonly truncation: string | undefined;
  /** Transitions that no run takes, as `file:line`. */
  readonly unreached: readonly string[];
}

/** What each assertion of the models contains. */
const ASSERTIONS: readonly (readonly [text: string, property: Property])[] = [
  ['owed==sum', 'history'],
  ['counted>=', 'history'],
  ['sum<=', 'window'],
  ['>=sum', 'key'],
  ['in_hours[', 'history'],
  ['spent[', 'period'],
];
const TRUNCATION = /max search depth too small|search not completed|out of memory|memory bound|MEMLIM/i;

/** Returns what the report says. A report that breaks off counts as truncated. */
export function parsePanReport(report: string): PanReport {
  const errors = /errors: (\d+)/.exec(report)?.[1];
  const failure = /^pan:\d+: (.*?)(?: \(at depth \d+\))?$/m.exec(report)?.[1];
  const isViolated = errors !== undefined && errors !== '0';
  return {
    states: Number(/^\s*(\S+) states, stored/m.exec(report)?.[1] ?? 0),
    depth: Number(/depth reached (\d+)/.exec(report)?.[1] ?? 0),
    violation: isViolated ? violationOf(failure ?? 'an error without a message') : undefined,
    truncation: truncationOf(report, errors),
    unreached: [...report.matchAll(/^\t(\S+:\d+), state \d+, "(?!-end-")/gm)].map(([, place = '']) => place),
  };
}

function violationOf(failure: string): string {
  const assertion = /^assertion violated \((.*)\)$/.exec(failure)?.[1]?.replaceAll(' ', '');
  return ASSERTIONS.find(([text]) => assertion?.includes(text))?.[1] ?? failure;
}

function truncationOf(report: string, errors: string | undefined): string | undefined {
  const reason = TRUNCATION.exec(report)?.[0];
  if (reason !== undefined) return reason;
  if (errors === undefined) return 'the report has no result';
  // Not bitstate hashing or hash compaction, which may take a new state for a known one.
  return /^Full statespace search for:/m.test(report) ? undefined : 'not a full search of the states';
}
