import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { watchFiles } from '../../base/watch-files.ts';
import { type Certificate, checkCertificate } from './certificate.ts';

export type UsableCertificate = Extract<Certificate, { kind: 'usable' }>;

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

interface WatchedCertificateOptions extends CertificateFiles {
  /** Called with each replacement of the certificate. */
  readonly onReplaced: (certificate: UsableCertificate) => void;
  /** Called once for each new content that cannot be used; `fault` names the file and the problem. */
  readonly onRefused: (fault: string) => void;
  /** Ends the watch. */
  readonly signal: AbortSignal;
}

const POLL_MS = 60_000;

/**
 * Reads a certificate, then watches its files. If their new content is not usable, the last good certificate stays.
 * @throws Error if the first content cannot be used; the message says why.
 */
export async function watchCertificate(options: WatchedCertificateOptions): Promise<UsableCertificate> {
  const { certFile, keyFile, onReplaced, onRefused, signal } = options;
  let current: UsableCertificate | undefined;
  /** Identifies the content read last, usable or not. */
  let seen: string | undefined;
  async function check(): Promise<void> {
    const { id, certificate, fault = '' } = await readCertificate(options);
    if (signal.aborted || id === seen) return;
    seen = id;
    if (certificate) {
      if (current) onReplaced(certificate);
      current = certificate;
    } else if (current) onRefused(fault);
    else throw new Error(`the certificate cannot be used: ${fault}`);
  }
  await watchFiles({ files: [certFile, keyFile], pollMs: POLL_MS, check, signal });
  if (!current) throw new Error('the certificate was not read: the gateway is stopping');
  return current;
}

/** `id`: hash of the content, or the fault if a file could not be read. */
async function readCertificate({ certFile, keyFile }: CertificateFiles) {
  try {
    const [cert, key] = [await readFile(certFile, 'utf8'), await readFile(keyFile, 'utf8')];
    const checked = checkCertificate(cert, key);
    const id = createHash('sha256').update(`${cert}\0${key}`).digest('hex');
    if (checked.kind === 'usable') return { id, certificate: checked };
    return { id, fault: `${checked.at === 'cert' ? certFile : keyFile} ${checked.fault}` };
  } catch (error) {
    const { path, code = 'unknown' } = error as NodeJS.ErrnoException;
    const fault = `${path} cannot be read (${code})`;
    return { id: fault, fault };
  }
}
