import { PROBLEMS, type ProblemEntry } from '../../http/problems/table.ts';
import { entryOf } from './entry-of.ts';

const UNKNOWN = {
  title: 'Refused',
  advice: 'The response to the client names the fault in its detail.',
  remedy: 'See `detail` in the response.',
};

/** Returns the title of a refusal, what an operator can do (`advice`), and what the client can do (`remedy`). */
export const refusalOf = (code: string) => ({ ...UNKNOWN, ...entryOf<ProblemEntry>(PROBLEMS, code) });
