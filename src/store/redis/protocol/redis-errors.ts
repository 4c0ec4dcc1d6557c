/** Errors of Redis and ioredis, made fit for logs. */
import { ReplyError } from 'ioredis';

/** Redis repeats the arguments of a command that it does not know: for AUTH, the password. */
const REPEATED_ARGUMENTS = /,? with args beginning with.*/is;
/** Shorter secrets are not masked, because that would mangle every message. */
const SHORTEST_SECRET = 4;
/** The prefix that Redis before 7 puts before the error of a command within a script. */
const SCRIPT_PLACE = /^ERR Error running script \(call to \w+\): (?:@user_script: ?\d+: )+-?(?=[A-Z]+ )/;

/** Thrown when Redis replies in a form that the command does not allow. */
export class UnexpectedReplyError extends Error {
  override readonly name = 'UnexpectedReplyError';

  constructor(command: string) {
    super(`Redis gave an unexpected reply to ${command}`);
  }
}

/** Returns whether Redis replied. */
export function isReply(error: unknown): boolean {
  return error instanceof ReplyError || error instanceof UnexpectedReplyError;
}

export function describe(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(describe).join('; ');
  return error instanceof Error ? error.message.replace(SCRIPT_PLACE, '') || error.name : String(error);
}

/**
 * Removes the data sent to Redis from an error: key digests and the password of AUTH must not reach a log. ioredis
 * attaches a command's arguments to its error, and Redis may repeat them in its reply.
 */
export function withoutArguments(error: unknown, secrets: readonly string[] = []): void {
  if (!(error instanceof Error)) return;
  if (error instanceof AggregateError) for (const inner of error.errors) withoutArguments(inner, secrets);
  if ('command' in error) delete error.command;
  const message = secrets.reduce(
    (text, secret) => text.replaceAll(secret, '***'),
    error.message.replace(REPEATED_ARGUMENTS, ''),
  );
  if (message === error.message) return;
  // The stack begins with the message.
  error.stack = (error.stack ?? '').replace(error.message, () => message);
  error.message = message;
}

/** Returns whether the text is long enough to be masked. */
export function isSecret(text: string | null | undefined): text is string {
  return typeof text === 'string' && text.length >= SHORTEST_SECRET;
}
