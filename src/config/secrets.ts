import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { ConfigDocument } from './document.ts';
import { type Path, type Problem, systemReason } from './problems.ts';

/** A setting that can be given in the file or in one of its own; `path` is where it was given. */
export type Secret =
  | { readonly kind: 'none' }
  /** Given, but not to be had; a problem says why. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'value'; readonly value: string; readonly path: Path };

export interface Secrets {
  readonly adminToken: Secret;
  readonly storeUrl: Secret;
  /** PEM: the authorities that sign the store's certificates. */
  readonly storeCa: Secret;
  /** PEM: the certificate that the gateway shows to the store, and its key. */
  readonly storeCertificate: Secret;
  readonly storeKey: Secret;
  readonly sentinelPassword: Secret;
  /** PEM, as the two below. */
  readonly listenCertificate: Secret;
  readonly listenKey: Secret;
  readonly upstreamCa: Secret;
  /** What the gateway shows to the backend. */
  readonly upstreamCertificate: Secret;
  readonly upstreamKey: Secret;
  readonly upstreamAuthorization: Secret;
  readonly assertionSigningKey: Secret;
}

/** Reads what stands in `files`. `folder`: what relative names are relative to. */
export async function readSecrets(
  document: ConfigDocument,
  folder: string,
): Promise<{ readonly secrets: Secrets; readonly files: readonly string[]; readonly problems: readonly Problem[] }> {
  const problems: Problem[] = [];
  const files: string[] = [];
  const read = (...path: string[]) => readSecret(document, folder, path, files, problems);
  const secrets = {
    adminToken: await read('admin', 'token'),
    storeUrl: await read('store', 'url'),
    // In files only, as the schema has it.
    storeCa: await read('store', 'tls', 'ca'),
    storeCertificate: await read('store', 'tls', 'cert'),
    storeKey: await read('store', 'tls', 'key'),
    sentinelPassword: await read('store', 'sentinel', 'password'),
    listenCertificate: await read('listen', 'tls', 'cert'),
    listenKey: await read('listen', 'tls', 'key'),
    upstreamCa: await read('upstream', 'tls', 'ca'),
    upstreamCertificate: await read('upstream', 'tls', 'cert'),
    upstreamKey: await read('upstream', 'tls', 'key'),
    upstreamAuthorization: await read('upstream', 'authorization'),
    // In a file only: the schema knows no `signing_key`.
    assertionSigningKey: await read('identity', 'assertion', 'signing_key'),
  };
  return { secrets, files, problems };
}

async function readSecret(
  document: ConfigDocument,
  folder: string,
  path: Path,
  files: string[],
  problems: Problem[],
): Promise<Secret> {
  const filePath = [...path.slice(0, -1), `${path.at(-1)}_file`];
  const [value, file] = [document.at(path), document.at(filePath)];
  // Another check has said what is wrong with these.
  if (![value, file].every((given) => given === undefined || typeof given === 'string')) return { kind: 'unknown' };
  if (typeof file !== 'string' || file === '') {
    return typeof value === 'string' && value !== '' ? { kind: 'value', value, path } : { kind: 'none' };
  }
  if (value) {
    const what = `is given besides ${path.at(-1)}; give one of the two`;
    problems.push({ line: document.lineOf(filePath), path: filePath, what });
    return { kind: 'unknown' };
  }
  const name = resolve(folder, file);
  files.push(name);
  try {
    const content = await readFile(name, 'utf8');
    const trimmed = content.replace(/(?:\r?\n)+$/, '');
    return trimmed === '' ? { kind: 'none' } : { kind: 'value', value: trimmed, path: filePath };
  } catch (error) {
    const what = `the file cannot be read: ${systemReason(error)}; a relative name is relative to this file's folder`;
    problems.push({ line: document.lineOf(filePath), path: filePath, what });
    return { kind: 'unknown' };
  }
}
