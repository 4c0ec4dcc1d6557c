/**
 * Writes log lines to a stream, usually stdout, that may be slow, stuck or gone. Logging never waits: the lines of one
 * turn of the event loop are collected and written together. Above a limit, or once the stream has failed, lines are
 * dropped and counted; the count is logged when there is room again.
 *
 * The stream must be process.stdout itself rather than a separate file descriptor: Node.js then sets a pipe to
 * non-blocking. A blocking write to a pipe without a reader occupies a libuv thread, and the process cannot even exit.
 */
import type { Writable } from 'node:stream';

const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
const CLOSE_DEADLINE_MS = 1000;

export function openLogStream(
  stream: Writable,
  { maxBufferedBytes = MAX_BUFFERED_BYTES, closeDeadlineMs = CLOSE_DEADLINE_MS } = {},
) {
  let gathered = '';
  let scheduled: NodeJS.Immediate | undefined;
  let droppedLines = 0;
  let reportedDrops = 0;
  let usable = true;

  // Never removed: an error event without a listener ends the process (EPIPE, when the reader of a pipe is gone).
  stream.on('error', () => {
    usable = false;
  });

  function flush(): void {
    scheduled = undefined;
    const lines = gathered;
    gathered = '';
    if (lines === '') return;
    if (usable) stream.write(lines);
    else droppedLines += lines.split('\n').length - 1;
  }

  function append(line: string): void {
    gathered += line;
    scheduled ??= setImmediate(flush);
  }

  return {
    write(line: string): void {
      if (!usable || stream.writableLength + gathered.length + line.length > maxBufferedBytes) {
        droppedLines++;
        return;
      }
      if (droppedLines > reportedDrops) {
        const members = { level: 'warn', time: new Date().toISOString(), dropped_lines: droppedLines - reportedDrops };
        append(`${JSON.stringify({ ...members, msg: 'log lines were dropped: their reader was too slow' })}\n`);
        reportedDrops = droppedLines;
      }
      append(line);
    },

    /** Lines dropped since the start. */
    droppedLines: () => droppedLines,

    /** Writes the remaining lines, for at most a second; later lines are dropped. Does not end the stream. */
    async close(): Promise<void> {
      clearImmediate(scheduled);
      flush();
      if (usable) await whenWritten(stream, closeDeadlineMs);
      usable = false;
    },
  };
}

/** Resolves when the stream has written everything, has failed, or at the deadline. */
function whenWritten(stream: Writable, deadlineMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, deadlineMs);
    stream.write('', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
