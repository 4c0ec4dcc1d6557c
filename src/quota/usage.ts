/** A customer's hour as people read it. `resetSeconds` is 0 when nothing is counted. */
export interface Usage {
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  readonly windowSeconds: number;
}

/** As callers and administrators get it. */
export function usageDocument({ limit, used, remaining, resetSeconds, windowSeconds }: Usage) {
  return { limit, used, remaining, reset_seconds: resetSeconds, window_seconds: windowSeconds };
}
