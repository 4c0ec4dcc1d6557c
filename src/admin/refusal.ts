import type { ProblemCode } from '../problems/table.ts';

/** Thrown by admin handlers to respond with a problem document, which error-handler.ts writes. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: ProblemCode;
  readonly detail: string;
  /** Additional members of the problem document, for programs. */
  readonly members: Readonly<Record<string, string>>;

  constructor(code: ProblemCode, detail: string, members: Readonly<Record<string, string>> = {}) {
    super(`${code}: ${detail}`);
    this.code = code;
    this.detail = detail;
    this.members = members;
  }
}
