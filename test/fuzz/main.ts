/**
 * Sends mutated and generated request bytes to a running gateway, and looks for a crash, a hang, a 500, an answer that is
 * none, or a backend that sees anything but the requests that were sent.
 *
 *     npm run lab -- fuzz [--seconds N] [--seed N]     60 seconds, with a seed of chance
 *     npm run lab -- fuzz --replay [NAME]              what was found before: all of it, or one file of test/fuzz/findings
 */
import { Command, InvalidArgumentError } from 'commander';
import { callerAddress, fuzz, isAlive, keepFinding, readFindings } from './run.ts';
import { startSubject } from './subject.ts';
import { findFault } from './verdict.ts';

interface Options {
  readonly seconds: number;
  readonly seed: number;
  /** A name, or true for all. */
  readonly replay?: string | true;
}

const { seconds, seed, replay } = new Command('npm run lab -- fuzz')
  .description(
    'Sends mutated requests to a gateway, and looks for a crash, a hang, a 500 or a request that was not sent.',
  )
  .option('--seconds <number>', 'how long', wholeNumber, 60)
  .option('--seed <number>', 'what the bytes follow from; left out, chance', wholeNumber, Date.now() % 1_000_000_000)
  .option('--replay [name]', 'tries what was found before: all of test/fuzz/findings, or what begins so')
  .parse()
  .opts<Options>();

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError('It has to be a whole number.');
  return value;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function replayFindings(name: string | undefined): Promise<number> {
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

const faults =
  replay === undefined ? await run(seconds, seed) : await replayFindings(replay === true ? undefined : replay);
process.exitCode = faults > 0 ? 1 : 0;
