/** What an answer means while something is broken, and while nothing is. */
import { UPSTREAM_FAILURE_TYPE } from './upstream.ts';

/** `good`: far from its limit. `spent`: a limit that is soon used up. `unknown`: no such key. `aborting`: hangs up. */
export const CALLER_KINDS = ['good', 'spent', 'unknown', 'aborting'] as const;
export type CallerKind = (typeof CALLER_KINDS)[number];

export type Outcome =
  | { readonly kind: 'answered'; readonly status: number; readonly contentType: string }
  /** The connection ended within the answer or before it. */
  | { readonly kind: 'cut' }
  /** Nothing for longer than any deadline of the gateway's allows. */
  | { readonly kind: 'late' }
  /** By the caller itself. */
  | { readonly kind: 'aborted' };

const USUAL: Readonly<Record<CallerKind, readonly number[]>> = {
  good: [200],
  spent: [200, 429],
  // Many of them from one address are told to wait.
  unknown: [401, 429],
  aborting: [200],
};
const WHILE_DISTURBED = [502, 503, 504];

/** What is wrong with it, undefined when nothing is. `disturbed`: something was broken at some time of the request. */
export function judge(caller: CallerKind, outcome: Outcome, disturbed: boolean): string | undefined {
  switch (outcome.kind) {
    case 'aborted':
      return undefined;
    case 'late':
      return `${caller}: no answer in time`;
    case 'cut':
      return disturbed ? undefined : `${caller}: connection cut while nothing was broken`;
    case 'answered': {
      const { status, contentType } = outcome;
      if (USUAL[caller].includes(status)) return undefined;
      const isUpstreamFailure = status === 500 && contentType === UPSTREAM_FAILURE_TYPE;
      if (disturbed && (WHILE_DISTURBED.includes(status) || isUpstreamFailure)) return undefined;
      return `${caller}: ${status} ${disturbed ? 'while something' : 'while nothing'} was broken`;
    }
  }
}
