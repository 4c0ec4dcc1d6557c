/**
 * Keeps lines whole on a pipe that several processes write to. A write of at most PIPE_BUF bytes to a pipe is never
 * divided (POSIX write(2)), so lines are written in pieces of at most that size, one after the other. A longer line is
 * written in one piece, and may be divided only while the pipe is full.
 */
import { Writable } from 'node:stream';

/** PIPE_BUF on Linux; elsewhere at least 512. Files do not need this. */
const PIECE_BYTES = 4096;

/** Returns a stream for text that ends in a newline. An error of `target` destroys it; nothing is written afterwards. */
export function wholeLines(target: Writable): Writable {
  const stream = new Writable({
    highWaterMark: target.writableHighWaterMark,
    write(lines: Buffer, _encoding, done) {
      const pieces = inPieces(lines);
      const next = () => {
        const piece = pieces.next();
        if (piece.done) done();
        else target.write(piece.value, (error) => (error ? done(error) : next()));
      };
      next();
    },
  });
  target.on('error', (error) => stream.destroy(error));
  return stream;
}

function* inPieces(lines: Buffer): Generator<Buffer> {
  let rest = lines;
  while (rest.length > PIECE_BYTES) {
    const last = rest.lastIndexOf('\n', PIECE_BYTES - 1);
    const end = 1 + (last < 0 ? rest.indexOf('\n') : last) || rest.length;
    yield rest.subarray(0, end);
    rest = rest.subarray(end);
  }
  if (rest.length > 0) yield rest;
}
