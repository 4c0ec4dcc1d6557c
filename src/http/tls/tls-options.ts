import { constants } from 'node:crypto';
import type { TlsOptions } from 'node:tls';

/** A certificate followed by its intermediate certificates, and its private key; in PEM. */
export interface TlsKeys {
  readonly cert: string;
  readonly key: string;
}

/**
 * TLS 1.3, and the ciphers of TLS 1.2 with forward secrecy and authenticated encryption: Mozilla's intermediate profile
 * without finite-field DH, which no client of this decade needs.
 */
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** Returns the options of a TLS server for HTTP/1.1 only. When the keys change, all options must be set again. */
export function tlsOptions({ cert, key }: TlsKeys): TlsOptions {
  return {
    cert,
    key,
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ALPNProtocols: ['http/1.1'],
  };
}
