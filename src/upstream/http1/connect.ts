import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { systemScheduler } from '../../base/clock.ts';
import { hostOf } from '../../formats/host.ts';

/** A connection failed, or none is available. Failures that Node.js reports are errors with other codes. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  readonly code: 'ECONNRESET' | 'ETIMEDOUT' | 'POOL_CLOSED' | 'SHARE_EXCEEDED';

  constructor(code: ConnectionError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

export interface ConnectionEvents {
  /** The connection is open; with TLS, the certificate of the other side is verified. */
  onConnected(): void;
  /**
   * The first `length` of `bytes` arrived. The callee may overwrite them. Returns whether it still needs them after the call;
   * else the buffer is reused.
   */
  onBytes(bytes: Buffer, length: number): boolean;
}

/** Returns the value of the Host header; a unix socket has no name. */
export function authorityOf(url: URL): string {
  return isUnix(url) ? 'localhost' : url.host;
}

export function isUnix(url: URL): boolean {
  return url.protocol === 'unix:';
}

/** Starts a connection. If it fails, the socket emits `error` and `close`. */
export type Connect = (events: ConnectionEvents) => Socket;

/** Size of the read buffer of a TCP connection: 64 KiB of content with its head are one read. */
const READ_BYTES = 68 * 1024;

export interface ConnectOptions {
  /** Returns all addresses of the host's name, which are tried in turn. Omitted: the system, for each connection. */
  readonly lookup?: LookupFunction | undefined;
  /** PEM: CAs that may sign the other side's certificate (omitted: the well-known ones); client certificate and key. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined;
}

/**
 * Creates a function that connects to the origin of `url`. `timeoutMs` includes the lookup of the host's name and the
 * TLS handshake. TLS expects the name in the URL, never that of a request's Host header, and offers HTTP/1.1 only.
 */
export function createConnect(url: URL, timeoutMs: number, { lookup, tls }: ConnectOptions = {}): Connect {
  const isTls = url.protocol === 'https:';
  const host = hostOf(url);
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port);
  const address = isUnix(url)
    ? { path: url.pathname }
    : { host, port, noDelay: true, keepAlive: true, autoSelectFamily: true, ...(lookup && { lookup }) };
  let session: Buffer | undefined;

  function openTls({ onBytes }: ConnectionEvents): Socket {
    const servername = isIP(host) === 0 ? host : '';
    const socket = connectTls({
      ...address,
      ...tls,
      servername,
      minVersion: 'TLSv1.2',
      ALPNProtocols: ['http/1.1'],
      ...(session && { session }),
    });
    socket.on('session', (ticket: Buffer) => {
      session = ticket;
    });
    return socket.on('data', (bytes: Buffer) => onBytes(bytes, bytes.length));
  }

  function openTcp({ onBytes }: ConnectionEvents): Socket {
    // Reads into one reused buffer: no allocation, and no stream between socket and parser. V8 counts what buffers take
    // outside of its heap, and marks all of the heap each time that some 64 MB were added.
    let buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    const callback = (length: number): boolean => {
      if (onBytes(buffer, length)) buffer = Buffer.allocUnsafeSlow(READ_BYTES);
      return true;
    };
    return connectTcp({ ...address, onread: { buffer: () => buffer, callback } });
  }

  return (events) => {
    const socket = isTls ? openTls(events) : openTcp(events);
    const deadline = systemScheduler.deadline(timeoutMs, () => {
      socket.destroy(new ConnectionError('ETIMEDOUT', `no connection within ${timeoutMs} ms`));
    });
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      deadline.cancel();
      events.onConnected();
    });
    return socket.once('close', () => deadline.cancel());
  };
}
