/** Asks the check listener of a gateway about a key. */
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { PROBLEM } from '../api/admin/responses.ts';
import { describeProblem } from '../api/client/failures.ts';
import { printable } from '../api/client/printable.ts';
import { processEnvironment } from '../config/environment.ts';
import { EXIT, UsageError } from './exit-status.ts';
import { print, printDocument, remark } from './output.ts';

const TOKEN_VARIABLE = 'TOLLGATE_CHECK_TOKEN';
const TIMEOUT_MS = 10_000;
const YES = z.looseObject({
  allowed: z.literal(true),
  customer: z.string().nullable(),
  plan: z.string().nullable(),
  key_id: z.string().nullable(),
  scopes: z.array(z.string()).nullable(),
  limit: z.number().nullable(),
  remaining: z.number().nullable(),
});
const DECISION = z.union([YES, z.object({ allowed: z.literal(false), problem: PROBLEM })]);

interface Question {
  readonly path?: string | undefined;
  readonly method?: string | undefined;
  readonly address?: string | undefined;
}

interface CheckKeyOptions extends Question {
  readonly checkUrl: string;
  readonly json?: true | undefined;
}

/** Reads a key from standard input, and prints the decision about it. Resolves to the exit status. */
export async function checkKey({ checkUrl, json, ...question }: CheckKeyOptions): Promise<number> {
  if (process.stdin.isTTY) remark('Type or paste the key, then Enter and Ctrl-D:');
  const key = (await text(process.stdin)).trim();
  if (key === '') throw new UsageError('standard input must have one API key');
  const decision = await ask(checkUrl, key, question);
  if (json || decision.allowed) await printDocument(decision, { json });
  else await print(`no: ${describeProblem(decision.problem)}\n`);
  return decision.allowed ? EXIT.success : EXIT.failure;
}

async function ask(url: string, key: string, question: Question): Promise<z.output<typeof DECISION>> {
  const target = URL.parse('/verify', url);
  if (target === null) throw new UsageError('--check-url must be a URL such as http://127.0.0.1:8084');
  const token = processEnvironment()[TOKEN_VARIABLE];
  const response = await fetch(target, {
    method: 'POST',
    redirect: 'error',
    headers: { 'Content-Type': 'application/json', ...(token && { 'X-Tollgate-Check-Token': token }) },
    body: JSON.stringify({ key, ...question, dry_run: true }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: unknown) => {
    const { cause = error } = error instanceof Error ? error : {};
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `no response from the check listener at ${url}: ${printable(reason)}; --check-url sets its address`,
    );
  });
  const body: unknown = await response.json().catch(() => undefined);
  const decision = DECISION.safeParse(response.status === 200 ? body : undefined);
  if (decision.success) return decision.data;
  const problem = PROBLEM.safeParse(body);
  if (!problem.success) throw new Error(`${url} does not respond like the check listener: status ${response.status}`);
  const advice = response.status === 401 ? `; set ${TOKEN_VARIABLE} to check.token` : '';
  throw new Error(describeProblem(problem.data) + advice);
}
