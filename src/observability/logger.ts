import { type LoggerOptions, type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino';

export type Logger = PinoLogger;
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';

/** Receives log lines, each of which ends in a newline. Never throws. */
export interface LogDestination {
  write(line: string): void;
}

const MAX_CAUSE_DEPTH = 4;

/**
 * Creates a logger of JSON lines: `level` as a word, `time` in ISO 8601 UTC, the members of the call, `msg`. Pass
 * errors as `err`.
 */
export function createLogger({ level, destination }: { level: LogLevel; destination: LogDestination }): Logger {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: (error: unknown) => serializeError(error) },
    hooks: {
      // For a call without text, pino sets `msg` to the error's message, which bypasses the serializer.
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

/** Returns a logger that logs from `info` on, whatever the level of `logger`: for records that must not be disabled. */
export function loggerForAllLevels(logger: Logger): Logger {
  return logger.child({}, { level: 'info' });
}

function errorOf(logged: unknown): Error | undefined {
  if (logged instanceof Error) return logged;
  const hasError = typeof logged === 'object' && logged !== null && 'err' in logged && logged.err instanceof Error;
  return hasError ? (logged.err as Error) : undefined;
}

/**
 * Returns only these members of an error: libraries attach commands with arguments, request bodies and headers to their
 * errors, which contain keys and passwords.
 */
function serializeError(error: unknown, depth = 0): object {
  if (!(error instanceof Error)) {
    // Not String(error): an object's conversion may throw, and a library's may reveal secrets.
    return { type: typeof error, message: typeof error === 'string' ? redactSecrets(error) : '' };
  }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return {
    type: error.name,
    message: redactSecrets(error.message),
    ...(code && { code }),
    ...(error.stack && { stack: redactSecrets(error.stack) }),
    ...(error.cause !== undefined && depth < MAX_CAUSE_DEPTH && { cause: serializeError(error.cause, depth + 1) }),
  };
}

const REDACTIONS: readonly (readonly [RegExp, string])[] = [
  [/\btg_[0-9A-Za-z_]{4,}/g, 'tg_[redacted]'],
  // RFC 3986 §3.2.1: user information of a URL, such as redis://user:password@host. A password may hold a raw `@`.
  [/([a-z][a-z0-9+.-]*:\/\/)[^\s/?#]*@/gi, '$1[redacted]@'],
  // RFC 9110 §11.4: a scheme and its credentials.
  [/\b(bearer|basic)\s+[A-Za-z0-9\-._~+/]{8,}=*/gi, '$1 [redacted]'],
];

/**
 * Returns a text of unknown origin, such as an error's message, without anything that looks like a credential. It is
 * the second line of defence: known secrets must not get into a message at all.
 */
export function redactSecrets(text: string): string {
  return REDACTIONS.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text);
}
