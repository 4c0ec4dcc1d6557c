/** What a response means while something is broken, and while nothing is. */
import { UPSTREAM_FAILURE_TYPE } from './upstream.ts';

/** `good`: far from its limit. `spent`: a limit that is soon used up. `unknown`: no such key. `aborting`: hangs up. */
const CALLER_KINDS = ['good', 'spent', 'unknown', 'aborting'] as const;
export type ClientKind = (typeof CALLER_KINDS)[number];

export type Outcome =
  | { readonly kind: 'response'; readonly status: number; readonly contentType: string }
  /** The connection ended within the response or before it. */
  | { readonly kind: 'cut' }
  /** Nothing for longer than any deadline of the gateway's allows. */
  | { readonly kind: 'late' }
  /** By the client. */
  | { readonly kind: 'aborted' };

const USUAL: Readonly<Record<ClientKind, readonly number[]>> = {
  good: [200],
  spent: [200, 429],
  // 429: too many unknown keys from one address.
  unknown: [401, 429],
  aborting: [200],
};
const DURING_FAULT = [502, 503, 504];

/** Returns what is wrong with an outcome, or undefined. `duringFault`: a fault was active at some time during the request. */
export function judge(client: ClientKind, outcome: Outcome, duringFault: boolean): string | undefined {
  switch (outcome.kind) {
    case 'aborted':
      return undefined;
    case 'late':
      return `${client}: no response in time`;
    case 'cut':
      return duringFault ? undefined : `${client}: connection reset while nothing was broken`;
    case 'response': {
      const { status, contentType } = outcome;
      if (USUAL[client].includes(status)) return undefined;
      const isUpstreamFailure = status === 500 && contentType === UPSTREAM_FAILURE_TYPE;
      if (duringFault && (DURING_FAULT.includes(status) || isUpstreamFailure)) return undefined;
      return `${client}: ${status} ${duringFault ? 'while something' : 'while nothing'} was broken`;
    }
  }
}
