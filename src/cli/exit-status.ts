/** Exit statuses of the command line, the same for every command. */
export const EXIT = { success: 0, failure: 1, usage: 2, brokenPipe: 141 } as const;

/** The command was called incorrectly, and nothing was done. Exits with {@link EXIT.usage}. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/**
 * The reader of standard output, such as `head`, has closed it. Exits silently with {@link EXIT.brokenPipe}: 128 +
 * SIGPIPE, the status that a shell reports for a program killed by that signal. Node.js ignores the signal.
 */
export class BrokenPipeError extends Error {
  override readonly name = 'BrokenPipeError';
}

/** A file given by the user has faults. `lines`: messages, each starting with its location in the file. */
export class FaultyFileError extends Error {
  override readonly name = 'FaultyFileError';

  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
  }
}
