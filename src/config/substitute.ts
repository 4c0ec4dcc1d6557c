/**
 * Substitutes `${NAME}` and `${NAME:-default}` in one scalar; `$${` is a literal `${`. As in a shell, the default also
 * replaces a variable that is set but empty. Defaults are literal up to the first `}` and do not nest. Variable values
 * are not scanned again, so they cannot introduce further substitutions.
 */

export type SubstitutionFault = { readonly kind: 'unset'; readonly name: string } | { readonly kind: 'malformed' };

export type Substitution =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly faults: readonly SubstitutionFault[] };

export type Environment = Readonly<Record<string, string | undefined>>;

const TOKEN = /\$\$\{|\$\{(?:(?<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?<fallback>(?:(?!\$\{)[^}])*))?\})?/g;

export function substitute(source: string, env: Environment): Substitution {
  const faults: SubstitutionFault[] = [];
  let text = '';
  let end = 0;
  for (const match of source.matchAll(TOKEN)) {
    text += source.slice(end, match.index);
    end = match.index + match[0].length;
    const { name, fallback } = match.groups ?? {};
    if (match[0] === '$${') text += '${';
    else if (name === undefined) faults.push({ kind: 'malformed' });
    else {
      const value = Object.hasOwn(env, name) ? env[name] : undefined;
      if (value === undefined && fallback === undefined) faults.push({ kind: 'unset', name });
      text += value || (fallback ?? '');
    }
  }
  if (faults.length > 0) return { ok: false, faults };
  return { ok: true, text: text + source.slice(end) };
}

/** Returns the text of a problem. Does not repeat a malformed source: it may be a password that contains `${`. */
export function describeFault(fault: SubstitutionFault): string {
  if (fault.kind === 'unset') {
    return `environment variable ${fault.name} is not set; set it, or write \${${fault.name}:-default}`;
  }
  return `has a "\${" that does not begin \${NAME} or \${NAME:-default}; write $\${ for a literal "\${"`;
}
