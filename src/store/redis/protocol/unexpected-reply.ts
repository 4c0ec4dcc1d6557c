/** Thrown when Redis replies in a form that the command does not allow. */
export class UnexpectedReplyError extends Error {
  override readonly name = 'UnexpectedReplyError';

  constructor(command: string) {
    super(`Redis gave an unexpected reply to ${command}`);
  }
}
