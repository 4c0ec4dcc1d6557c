/** Exit statuses of the command line; the same for every command. */
export const EXIT = { success: 0, failure: 1, usage: 2, brokenPipe: 141 } as const;

/** The command was called in a way in which it cannot be carried out; nothing was done. Ends with {@link EXIT.usage}. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/**
 * The reader of standard output has closed it, as `head` does. Ends silently with {@link EXIT.brokenPipe}: 128 + SIGPIPE, the
 * status that a shell gives a program which that signal ends. Node.js ignores the signal.
 */
export class BrokenPipeError extends Error {
  override readonly name = 'BrokenPipeError';
}

/** A file of the user's has faults. `lines`: each complete in itself, beginning with its place. */
export class FaultyFileError extends Error {
  override readonly name = 'FaultyFileError';

  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
  }
}
