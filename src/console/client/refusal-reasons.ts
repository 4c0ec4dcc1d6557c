import { entryOf } from '../../pages/client/entry-of.ts';
import { PROBLEMS, type ProblemEntry } from '../../problems/table.ts';

/** Returns what a refusal of a customer's request is called, and what an operator can do. */
export function refusalReason(code: string): Required<Pick<ProblemEntry, 'title' | 'advice'>> {
  const { title = 'Refused', advice = 'The response to the client names the fault in its detail.' } =
    entryOf<ProblemEntry>(PROBLEMS, code) ?? {};
  return { title, advice };
}
