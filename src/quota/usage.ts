/** A customer's hour as people read it. `resetSeconds` is 0 when nothing is counted. */
export interface Usage {
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  readonly windowSeconds: number;
}
