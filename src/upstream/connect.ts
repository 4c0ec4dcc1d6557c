import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { systemScheduler } from '../clock.ts';
import { ConnectTimeoutError } from './failures.ts';

export interface ConnectionEvents {
  /** The connection stands; with TLS, the other side has proven who it is. */
  onConnected(): void;
  /** The first `length` of `bytes` came; the call may overwrite them, and they are overwritten after it. */
  onBytes(bytes: Buffer, length: number): void;
}

/** Without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/** Begins a connection. When it fails, the socket emits `error` and `close`. */
export type Connect = (events: ConnectionEvents) => Socket;

/** Read at once from a connection, at most. */
const READ_BYTES = 64 * 1024;

export interface ConnectOptions {
  /** Gives all addresses of the host's name, which are tried in turn; left out, the system is asked for each connection. */
  readonly lookup?: LookupFunction | undefined;
  /** PEM: who must have signed the other side's certificate (left out: the well-known ones), and what it is shown. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined;
}

/**
 * Connections to the origin of `url`. `timeoutMs` has the lookup of the host's name and TLS in it. TLS expects the name
 * in the URL, never one that a request's Host field brings in, and speaks HTTP/1.1 only.
 */
export function createConnect(url: URL, timeoutMs: number, { lookup, tls }: ConnectOptions = {}): Connect {
  const isTls = url.protocol === 'https:';
  const host = hostOf(url);
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port);
  const address = { host, port, noDelay: true, keepAlive: true, autoSelectFamily: true, ...(lookup && { lookup }) };
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
    // Read into one buffer again and again: no allocation, and no stream between the socket and the parser.
    const callback = (length: number, bytes: Uint8Array): boolean => {
      onBytes(bytes as Buffer, length);
      return true;
    };
    return connectTcp({ ...address, onread: { buffer: Buffer.allocUnsafeSlow(READ_BYTES), callback } });
  }

  return (events) => {
    const socket = isTls ? openTls(events) : openTcp(events);
    const deadline = systemScheduler.deadline(timeoutMs, () => {
      socket.destroy(new ConnectTimeoutError(`no connection within ${timeoutMs} ms`));
    });
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      deadline.cancel();
      events.onConnected();
    });
    return socket.once('close', () => deadline.cancel());
  };
}
