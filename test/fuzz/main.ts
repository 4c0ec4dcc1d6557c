/**
 * Sends mutated and generated request bytes to a running gateway, and looks for a crash, a hang, a 500, an answer that is
 * none, or a backend that sees anything but the requests that were sent.
 *
 *     npm run fuzz -- [--seconds N] [--seed N]     60 seconds, with a seed of chance
 *     npm run fuzz -- --replay [NAME]              what was found before: all of it, or one file of test/fuzz/findings
 */
import { parseArgs } from 'node:util';
import { callerAddress, fuzz, isAlive, keepFinding, readFindings } from './run.ts';
import { startSubject } from './subject.ts';
import { findFault } from './verdict.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    replay: { type: 'boolean', default: false },
  },
});

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function replay(name: string | undefined): Promise<number> {
  let faults = 0;
  for (const finding of readFindings().filter((each) => name === undefined || each.name.startsWith(name))) {
    // A gateway for each: the one before may have been harmed.
    const subject = await startSubject();
    const fault = await findFault(subject, finding.tried, callerAddress(0));
    say(`${finding.name}: ${fault ?? 'well'}`);
    if (fault !== undefined) faults++;
    await subject.close();
  }
  return faults;
}

async function run(seconds: number, seed: number): Promise<number> {
  say(`seed ${seed}, ${seconds} seconds`);
  const subject = await startSubject();
  try {
    const endMs = performance.now() + seconds * 1000;
    const { cases, findings } = await fuzz(subject, seed, () => performance.now() >= endMs);
    const alive = await isAlive(subject);
    say(`${cases} cases, ${findings.length} findings${alive ? '' : ', and a good request is not answered any more'}`);
    findings.forEach(({ tried, fault }, i) => {
      say(`\n${fault.slice(0, 2000)}\n${keepFinding(`seed-${seed}-${i}`, tried, fault)}`);
    });
    return findings.length + (alive ? 0 : 1);
  } finally {
    await subject.close();
  }
}

const faults = values.replay ? await replay(positionals[0]) : await run(Number(values.seconds), Number(values.seed));
process.exitCode = faults > 0 ? 1 : 0;
