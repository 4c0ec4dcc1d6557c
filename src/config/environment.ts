/** Environment variables, and their substitution in the config file. */
import type { Config } from './config.ts';
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

type SubstitutionFault = { readonly kind: 'unset'; readonly name: string } | { readonly kind: 'malformed' };

type Substitution =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly faults: readonly SubstitutionFault[] };

const TOKEN = /\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-((?:(?!\$\{)[^}])*))?\})?/g;

/**
 * Substitutes `${NAME}` and `${NAME:-default}` in one scalar; `$${` is a literal `${`. As in a shell, the default also
 * replaces a variable that is set but empty. Defaults are literal up to the first `}` and do not nest. Variable values
 * are not scanned again, so they cannot introduce further substitutions.
 */
export function substitute(source: string, env: Environment): Substitution {
  const faults: SubstitutionFault[] = [];
  const text = source.replaceAll(TOKEN, (token, name?: string, fallback?: string) => {
    if (token === '$${') return '${';
    if (name === undefined) {
      faults.push({ kind: 'malformed' });
      return '';
    }
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value === undefined && fallback === undefined) faults.push({ kind: 'unset', name });
    return value || (fallback ?? '');
  });
  return faults.length > 0 ? { ok: false, faults } : { ok: true, text };
}

/** Returns the names of the variables that a text refers to. */
export function variablesIn(source: string): string[] {
  return [...source.matchAll(TOKEN)].flatMap(([, name]) => name ?? []);
}

/** Returns the text of a problem. Does not repeat a malformed source: it may be a password that contains `${`. */
export function describeFault(fault: SubstitutionFault): string {
  if (fault.kind === 'unset') {
    return `environment variable ${fault.name} is not set; set it, or write \${${fault.name}:-default}`;
  }
  return `has a "\${" that does not begin \${NAME} or \${NAME:-default}; write $\${ for a literal "\${"`;
}

/** Returns the environment variable that sets a listener's port, if the file has the port as `${NAME}`. */
export function portVariable({ expressions }: Config, section: 'listen' | 'ops' | 'admin'): string | undefined {
  return /^\$\{(\w+)/.exec(expressions.get(pathKey([section, 'port'])) ?? '')?.[1];
}
