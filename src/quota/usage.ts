/** A customer's usage of the last hour, for display. `resetSeconds` is 0 when nothing is counted. */
export interface Usage {
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  readonly windowSeconds: number;
}

/** Returns usage in the form of the public and admin APIs. */
export function usageDocument({ limit, used, remaining, resetSeconds, windowSeconds }: Usage) {
  return { limit, used, remaining, reset_seconds: resetSeconds, window_seconds: windowSeconds };
}
