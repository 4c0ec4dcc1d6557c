import { type LoggerOptions, type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino';
import { redactSecrets } from './redact.ts';

export type Logger = PinoLogger;
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';

/** Where lines go; each ends in a newline. Never throws. */
export interface LogDestination {
  write(line: string): void;
}

const DEEPEST_CAUSE = 4;

/**
 * A logger of JSON lines: `level` as a word, `time` in ISO 8601 UTC, the members of the call, `msg`. Give errors as
 * `err`.
 */
export function createLogger({ level, destination }: { level: LogLevel; destination: LogDestination }): Logger {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: (error: unknown) => serializeError(error) },
    hooks: {
      // Without a text of its own, a line gets its error's message as `msg`, and that has not gone through the serializer.
      logMethod(args, method) {
        const [logged] = args;
        const error = args.length === 1 ? errorOf(logged) : undefined;
        if (error === undefined) method.apply(this, args);
        else method.apply(this, [logged === error ? { err: error } : logged, '%s', redactSecrets(error.message)]);
      },
    },
  };
  return pino(options, destination);
}

/** Logs from `info` on whatever level `logger` has or gets: for records that no setting may turn off. */
export function loggerForAllLevels(logger: Logger): Logger {
  return logger.child({}, { level: 'info' });
}

function errorOf(logged: unknown): Error | undefined {
  if (logged instanceof Error) return logged;
  const hasError = typeof logged === 'object' && logged !== null && 'err' in logged && logged.err instanceof Error;
  return hasError ? (logged.err as Error) : undefined;
}

interface SerializedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: SerializedError;
}

/**
 * Only these members, by intent: libraries hang commands with their arguments, request bodies and headers onto their
 * errors, and keys and passwords are among them.
 */
export function serializeError(error: unknown, depth = 0): SerializedError {
  if (!(error instanceof Error)) {
    // Not String(error): an object may refuse, and one of a library's own may have secrets in it.
    return { type: typeof error, message: typeof error === 'string' ? redactSecrets(error) : '' };
  }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return {
    type: error.name,
    message: redactSecrets(error.message),
    ...(code && { code }),
    ...(error.stack && { stack: redactSecrets(error.stack) }),
    ...(error.cause !== undefined && depth < DEEPEST_CAUSE && { cause: serializeError(error.cause, depth + 1) }),
  };
}
