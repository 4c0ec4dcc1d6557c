/** Redis answered, but not in the form that the command must answer in. */
export class UnexpectedReplyError extends Error {
  override readonly name = 'UnexpectedReplyError';

  constructor(command: string) {
    super(`Redis gave an unexpected reply to ${command}`);
  }
}
