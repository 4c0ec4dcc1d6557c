import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { type Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { openLogStream } from '../../src/observability/log-stream.ts';

const MODULE = new URL('../../src/observability/log-stream.ts', import.meta.url).href;

/** A stream that passes on a chunk when told to. */
function openGate() {
  const written: string[] = [];
  const waiting: (() => void)[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      waiting.push(() => {
        written.push(String(chunk));
        done();
      });
    },
  });
  const open = () => {
    for (let pass = waiting.shift(); pass; pass = waiting.shift()) pass();
  };
  return { stream, open, lines: () => written.join('').split('\n').slice(0, -1) };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A process that logs to its stdout by `log`, closes it, and reports what it wants on stderr. */
function startLogging(script: string, stdout: 'pipe' | number, closeDeadlineMs = 20_000) {
  const code = `const { openLogStream } = await import(${JSON.stringify(MODULE)});
    const log = openLogStream(process.stdout, { closeDeadlineMs: ${closeDeadlineMs} });
    ${script}`;
  return spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', stdout, 'pipe'] });
}

function readAll(stream: Readable | null): Promise<string> {
  return stream === null ? Promise.resolve('') : text(stream);
}

async function outcome(child: ReturnType<typeof startLogging>) {
  const [report, [exitCode]] = await Promise.all([readAll(child.stderr), once(child, 'exit')]);
  return { report, exitCode };
}

describe('lines', () => {
  it('of one turn of the event loop reach the stream together and in order', async () => {
    const { stream, open, lines } = openGate();
    const log = openLogStream(stream);
    for (const line of ['1\n', '2\n', '3\n']) log.write(line);
    await turn();
    open();
    expect(lines()).toEqual(['1', '2', '3']);
  });

  it('beyond the bound are dropped and counted, and the count is logged when there is room again', async () => {
    const { stream, open, lines } = openGate();
    const log = openLogStream(stream, { maxBufferedBytes: 10 });
    log.write('12345\n');
    await turn();
    log.write('lost 1\n');
    log.write('lost 2\n');
    expect(log.droppedLines()).toBe(2);
    open();
    await turn();
    log.write('again\n');
    await turn();
    open();
    expect(lines()).toEqual(['12345', expect.stringContaining('"dropped_lines":2'), 'again']);
    expect(log.droppedLines()).toBe(2);
  });

  it('that wait are written before close resolves', async () => {
    const { stream, open, lines } = openGate();
    const log = openLogStream(stream);
    log.write('last\n');
    const closed = log.close();
    open();
    await turn();
    open();
    await closed;
    expect(lines()).toEqual(['last']);
  });

  it('after close are dropped and counted', async () => {
    const { stream, open } = openGate();
    const log = openLogStream(stream);
    const closed = log.close();
    open();
    await closed;
    log.write('late\n');
    expect(log.droppedLines()).toBe(1);
  });
});

it('a whole log arrives at a reader that reads it', async () => {
  const child = startLogging(
    `for (let i = 0; i < 20000; i++) log.write('line ' + i + '\\n');
     await log.close();
     process.exit(0);`,
    'pipe',
  );
  const [output, { exitCode }] = await Promise.all([readAll(child.stdout), outcome(child)]);
  expect(exitCode).toBe(0);
  expect(output.split('\n')).toEqual([...Array.from({ length: 20000 }, (_, i) => `line ${i}`), '']);
});

it('a reader that is gone costs its lines, not the process', async () => {
  const child = startLogging(
    `log.write('first\\n');
     process.stdout.on('error', () => {
       log.write('unheard\\n');
       process.stderr.write('dropped ' + log.droppedLines());
       process.exit(0);
     });
     setInterval(() => log.write('more\\n'), 5);`,
    'pipe',
  );
  child.stdout?.once('data', () => child.stdout?.destroy());
  expect(await outcome(child)).toEqual({ exitCode: 0, report: 'dropped 1' });
});

it('a reader that has stopped reading holds up neither the event loop nor the end of the process', async () => {
  const child = startLogging(
    `const line = 'x'.repeat(1023) + '\\n';
     for (let turn = 0; turn < 20; turn++) {
       for (let i = 0; i < 500; i++) log.write(line);
       await new Promise((resolve) => setImmediate(resolve));
     }
     process.stderr.write(log.droppedLines() > 1000 ? 'dropped' : 'kept');
     await log.close();
     process.exit(0);`,
    'pipe',
    200,
  );
  expect(await outcome(child)).toEqual({ exitCode: 0, report: 'dropped' });
});

it.runIf(process.platform === 'linux')('a full disk loses lines, and the process keeps running', async () => {
  const child = startLogging(
    `log.write('nowhere\\n');
     process.stdout.on('error', () => {
       log.write('nowhere either\\n');
       process.stderr.write('dropped ' + log.droppedLines());
       log.close().then(() => process.exit(0));
     });`,
    openSync('/dev/full', 'w'),
  );
  expect(await outcome(child)).toEqual({ exitCode: 0, report: 'dropped 1' });
});
