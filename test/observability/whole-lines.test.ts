import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { wholeLines } from '../../src/observability/whole-lines.ts';

/** Takes pieces one after the other, as slowly as asked. */
function recording(delayMs = 0) {
  const pieces: string[] = [];
  const stream = new Writable({
    write(piece: Buffer, _encoding, done) {
      pieces.push(piece.toString());
      setTimeout(done, delayMs);
    },
    writev: () => {
      throw new Error('several pieces were written together');
    },
  });
  return { pieces, stream };
}

function write(stream: Writable, text: string): Promise<void> {
  return new Promise((resolve, reject) => stream.write(text, (error) => (error ? reject(error) : resolve())));
}

test('lines are written whole, in pieces that a pipe does not divide, one after the other', async () => {
  const { pieces, stream } = recording(1);
  const lines = Array.from({ length: 300 }, (_, i) => `${i}:${'ä'.repeat(i)}\n`);
  const out = wholeLines(stream);
  await Promise.all([write(out, lines.slice(0, 100).join('')), write(out, lines.slice(100).join(''))]);
  expect(pieces.join('')).toBe(lines.join(''));
  for (const piece of pieces) {
    expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(4096);
    expect(piece.endsWith('\n')).toBe(true);
  }
});

test('a line that is longer is a piece of its own', async () => {
  const { pieces, stream } = recording();
  const long = `${'x'.repeat(10_000)}\n`;
  await write(wholeLines(stream), `a\n${long}b\n`);
  expect(pieces).toEqual(['a\n', long, 'b\n']);
});

test('a long text without a newline, which no logger writes, is a piece of its own too', async () => {
  const { pieces, stream } = recording();
  await write(wholeLines(stream), `a\n${'x'.repeat(10_000)}`);
  expect(pieces).toEqual(['a\n', 'x'.repeat(10_000)]);
});

test('when the target fails, the stream fails, and no write waits', async () => {
  const { stream } = recording();
  const out = wholeLines(stream);
  const failed = new Promise((resolve) => out.once('error', resolve));
  stream.destroy(new Error('EPIPE'));
  expect(await failed).toMatchObject({ message: 'EPIPE' });
});
