import type { ProblemCode } from '../problems/table.ts';

/** Thrown by the admin calls to end a request with a problem document; error-handler.ts writes it. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: ProblemCode;
  readonly detail: string;
  /** Beyond those of every problem document, for programs. */
  readonly members: Readonly<Record<string, string>>;

  constructor(code: ProblemCode, detail: string, members: Readonly<Record<string, string>> = {}) {
    super(`${code}: ${detail}`);
    this.code = code;
    this.detail = detail;
    this.members = members;
  }
}
