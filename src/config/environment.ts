/** Environment variables, and their substitution in the config file. */
import type { Config, ListenerName } from './config.ts';
import { pathKey } from './problems.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the process's environment. Only this function reads it; all other code takes it as a parameter. */
export function processEnvironment(): NodeJS.ProcessEnv {
  return process.env;
}

/**
 * Removes the variable with which Node.js verifies no certificate, whatever the settings say. Returns whether it was set.
 */
export function removeUnverifiedTls(env: NodeJS.ProcessEnv): boolean {
  if (env.NODE_TLS_REJECT_UNAUTHORIZED !== '0') return false;
  delete env.NODE_TLS_REJECT_UNAUTHORIZED;
  return true;
}

/** `faults`: texts of problems. */
type Substitution =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly faults: readonly string[] };

/** Does not repeat the source: it may be a password that contains `${`. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: what the file may say
const MALFORMED = 'has a "${" that does not begin ${NAME} or ${NAME:-default}; write $${ for a literal "${"';

const TOKEN = /\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-((?:(?!\$\{)[^}])*))?\})?/g;

/**
 * Substitutes `${NAME}` and `${NAME:-default}` in one scalar; `$${` is a literal `${`. As in a shell, the default also
 * replaces a variable that is set but empty. Defaults are literal up to the first `}` and do not nest. Variable values
 * are not scanned again, so they cannot introduce further substitutions.
 */
export function substitute(source: string, env: Environment): Substitution {
  const faults: string[] = [];
  const text = source.replaceAll(TOKEN, (token, name?: string, fallback?: string) => {
    if (token === '$${') return '${';
    const value = name !== undefined && Object.hasOwn(env, name) ? env[name] : undefined;
    if (name === undefined) faults.push(MALFORMED);
    else if (value === undefined && fallback === undefined) {
      faults.push(`environment variable ${name} is not set; set it, or write \${${name}:-default}`);
    }
    return value || (fallback ?? '');
  });
  return faults.length > 0 ? { ok: false, faults } : { ok: true, text };
}

/** Returns the names of the variables that a text refers to. */
export function variablesIn(source: string): string[] {
  return [...source.matchAll(TOKEN)].flatMap(([, name]) => name ?? []);
}

/** Returns the environment variable that sets a listener's port, if the file has the port as `${NAME}`. */
export function portVariable({ expressions }: Config, section: ListenerName): string | undefined {
  return /^\$\{(\w+)/.exec(expressions.get(pathKey([section, 'port'])) ?? '')?.[1];
}
