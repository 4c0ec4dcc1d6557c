/**
 * For a pipe that several processes write their lines to: no line of one ends up within a line of another. What is
 * written to a pipe in one piece of at most PIPE_BUF bytes is never divided (POSIX write(2)), so lines go in pieces of that
 * size, one after the other. A line that is longer is written at once, and may be divided only while the pipe is full.
 */
import { Writable } from 'node:stream';

/** PIPE_BUF on Linux; elsewhere 512 at least, and files need none of this. */
const PIECE_BYTES = 4096;

/** Takes text that ends in a newline. Errors of `target` are its own; nothing is written after one. */
export function wholeLines(target: Writable): Writable {
  const lines = new Writable({
    decodeStrings: false,
    highWaterMark: target.writableHighWaterMark,
    write(text: string, _encoding, done) {
      const pieces = inPieces(text);
      const next = () => {
        const piece = pieces.next();
        if (piece.done) done();
        else target.write(piece.value, (error) => (error ? done(error) : next()));
      };
      next();
    },
  });
  target.on('error', (error) => lines.destroy(error));
  return lines;
}

function* inPieces(text: string): Generator<string> {
  if (Buffer.byteLength(text) <= PIECE_BYTES) {
    if (text !== '') yield text;
    return;
  }
  let piece = '';
  let bytes = 0;
  for (const line of text.split('\n').slice(0, -1)) {
    const lineBytes = Buffer.byteLength(line) + 1;
    if (bytes > 0 && bytes + lineBytes > PIECE_BYTES) {
      yield piece;
      piece = '';
      bytes = 0;
    }
    piece += `${line}\n`;
    bytes += lineBytes;
  }
  yield piece;
}
