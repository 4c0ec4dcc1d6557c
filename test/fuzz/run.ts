import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Case, createCase, FUZZ_KEY } from './cases.ts';
import type { Subject } from './subject.ts';
import { findFault } from './verdict.ts';

/** Cases that were found to do harm; each is tried again with every run of the tests. */
const FINDINGS = fileURLToPath(new URL('findings', import.meta.url));

/** What was found, as it is kept. */
interface Finding {
  readonly fault: string;
  /** Base64. */
  readonly pieces: readonly string[];
  readonly resets: boolean;
}

export interface FuzzResult {
  readonly cases: number;
  readonly findings: readonly { readonly tried: Case; readonly fault: string }[];
}

/** At once. Each caller has an address of its own, by which the backend's requests are told apart. */
const CALLERS = process.platform === 'linux' ? 8 : 1;
/** More of them would say the same again. */
const MOST_FINDINGS = 20;
const NOTHING: Case = { pieces: [], resets: false };

export function callerAddress(index: number): string {
  return CALLERS === 1 ? '127.0.0.1' : `127.0.1.${index + 1}`;
}

/** Tries cases until `isOver`, or until enough was found or the gateway is gone. */
export async function fuzz(subject: Subject, seed: number, isOver: (cases: number) => boolean): Promise<FuzzResult> {
  let cases = 0;
  const findings: { tried: Case; fault: string }[] = [];
  async function call(address: string): Promise<void> {
    while (!isOver(cases) && findings.length < MOST_FINDINGS && subject.ended() === undefined) {
      const tried = createCase(seed, cases++);
      const fault = await findFault(subject, tried, address);
      if (fault !== undefined) findings.push({ tried, fault });
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, (_, i) => call(callerAddress(i))));
  const end = subject.ended();
  if (end !== undefined && findings.length === 0) findings.push({ tried: NOTHING, fault: `crash: ${end}` });
  if (subject.bugs() > 0) findings.push({ tried: NOTHING, fault: `${subject.bugs()} log lines tell of a bug` });
  return { cases, findings };
}

export function readFindings(): { readonly name: string; readonly tried: Case }[] {
  const names = readdirSync(FINDINGS).filter((name) => name.endsWith('.json'));
  return names.toSorted().map((name) => {
    const { pieces, resets }: Finding = JSON.parse(readFileSync(join(FINDINGS, name), 'utf8'));
    return { name, tried: { pieces: pieces.map((piece) => Buffer.from(piece, 'base64').toString('latin1')), resets } };
  });
}

/** @returns the name of the file. */
export function keepFinding(name: string, tried: Case, fault: string): string {
  mkdirSync(FINDINGS, { recursive: true });
  const pieces = tried.pieces.map((piece) => Buffer.from(piece, 'latin1').toString('base64'));
  const finding: Finding = { fault, pieces, resets: tried.resets };
  const file = join(FINDINGS, `${name}.json`);
  writeFileSync(file, `${JSON.stringify(finding, undefined, 2)}\n`);
  return file;
}

/** A request that must be answered, whatever was sent before. */
export async function isAlive(subject: Subject): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${subject.port}/v1/conversations`, {
    headers: { authorization: `Bearer ${FUZZ_KEY}` },
    signal: AbortSignal.timeout(10_000),
  }).catch(() => undefined);
  return answer?.status === 200;
}
