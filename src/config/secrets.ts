import { resolve } from 'node:path';
import { isMapping } from '../base/mapping.ts';
import type { NamedFile } from './config.ts';
import { readNamedFile } from './config-files.ts';
import { HIDDEN } from './disclose.ts';
import { child, type YamlDocument } from './document.ts';
import { SETTINGS } from './json-schema.ts';
import type { PreviewScope } from './preview-scope.ts';
import { type ConfigFault, formatPath, type Path, systemReason } from './problems.ts';

/** A value set inline or in the file that its `…_file` setting names. `path`: the setting that was used. */
export type Secret =
  | { readonly kind: 'none' }
  /** Set but not available; a problem says why. */
  | { readonly kind: 'unknown' }
  | {
      readonly kind: 'value';
      readonly value: string;
      readonly path: Path;
      /** The content of its file. */
      readonly content?: Buffer;
    };

/**
 * Returns a secret or PEM text by the name of its setting, such as `notices.endpoints[0].secret`: read inline or from the
 * file that its `…_file` setting names. The schema allows PEM text in files only.
 */
export type Secrets = (setting: string) => Secret;

/** In a preview, stands for a secret that the file hides. Breaks no rule of any secret. */
const ANY_SECRET = `whsec_${'A'.repeat(32)}`;

interface NamedFileRead extends NamedFile {
  /** Undefined if the file could not be read. */
  readonly content: Uint8Array | undefined;
}

/** Reads the secrets and the files that the document names. `folder`: base of relative file names. */
export async function readSecrets(
  document: YamlDocument,
  folder: string,
  scope?: PreviewScope,
): Promise<{ secrets: Secrets; reads: NamedFileRead[]; problems: ConfigFault[] }> {
  const reads: NamedFileRead[] = [];
  const problems: ConfigFault[] = [];

  async function readSecret(path: Path): Promise<Secret> {
    const filePath = [...path.slice(0, -1), `${path.at(-1)}_file`];
    const [value, file] = [document.at(path), document.at(filePath)];
    // Values that are not text are already reported by another check.
    if (![value, file].every((given) => given === undefined || typeof given === 'string')) return { kind: 'unknown' };
    const refuse = (what: string, at: Path = filePath): Secret => {
      problems.push({ path: at, what });
      return { kind: 'unknown' };
    };
    if (typeof file !== 'string' || file === '') {
      if (value === HIDDEN && scope) return { kind: 'value', value: ANY_SECRET, path };
      if (value === HIDDEN) return refuse('is the text that hides a secret; write the secret', path);
      return typeof value === 'string' && value !== '' ? { kind: 'value', value, path } : { kind: 'none' };
    }
    if (value) return refuse(`${path.at(-1)} is set too; remove one of the two`);
    const named = { setting: formatPath(filePath), file: resolve(folder, file) };
    const forbidden = scope?.namedFile(named.setting, named.file);
    if (forbidden !== undefined) return refuse(forbidden);
    try {
      const content = await readNamedFile(named.file);
      reads.push({ ...named, content });
      const trimmed = content.toString('utf8').replace(/(?:\r?\n)+$/, '');
      return trimmed === '' ? { kind: 'none' } : { kind: 'value', value: trimmed, path: filePath, content };
    } catch (error) {
      reads.push({ ...named, content: undefined });
      const hint = "a relative name is relative to this file's folder";
      return refuse(`the file cannot be read: ${systemReason(error)}; ${hint}`);
    }
  }

  const secrets = new Map<string, Secret>();
  for (const path of filedPaths(document.root)) secrets.set(formatPath(path), await readSecret(path));
  return { secrets: (setting) => secrets.get(setting) ?? { kind: 'unknown' }, reads, problems };
}

/**
 * Returns the path of each setting that is given inline or in the file that `<setting>_file` names; some only in a file.
 * Those within lists and maps are of the entries that `values` has.
 */
export function filedPaths(values: unknown, { properties = {}, items, additionalProperties } = SETTINGS): Path[] {
  const entry = items ?? additionalProperties;
  const members = entry ? values : properties;
  const list = items && Array.isArray(values) ? [...values.keys()] : [];
  const steps = items ? list : Object.keys(isMapping(members) ? members : {});
  return steps.flatMap((step): Path[] => {
    const setting = entry || properties[step] || {};
    if (setting.typeInWords === 'file') return [[String(step).replace(/_file$/, '')]];
    return filedPaths(child(values, step), setting).map((path) => [step, ...path]);
  });
}

/** Returns the value of a secret; undefined if it is not set, or not available. */
export function secretText(secret: Secret): string | undefined {
  return secret.kind === 'value' ? secret.value : undefined;
}

/** Returns the secrets of a notice endpoint: one on each line. */
export function webhookSecretsOf(text: string): string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
}
