import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { peerAddress } from '../formats/address-block.ts';
import { announcesBody, type Connections } from '../http/listener/connections.ts';
import { endWith } from '../http/listener/socket-control.ts';
import { messageClasses } from '../http/listener/strict-app.ts';
import { type Problem, problemResponse } from '../http/problems/document.ts';
import type { ProblemCode } from '../http/problems/table.ts';
import { type TlsKeys, tlsOptions } from '../http/tls/tls-options.ts';
import { failBody } from '../upstream/request-body.ts';
import { hideTarget } from './guard.ts';

interface PublicServerLimits {
  readonly headerBytes: number;
  readonly targetBytes: number;
  readonly headersTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
}

/** Interval at which Node.js checks connections for timeouts: the resolution of those timeouts. */
const CONNECTIONS_CHECK_MS = 1000;
/**
 * Bytes that the parser accepts above the configured limits. The parser limits only the sum of target and headers; up
 * to this excess, the guard reports which of the two is too long.
 */
const PARSER_SLACK_BYTES = 48 * 1024;

/** Node.js's error code for a request that did not arrive in time. */
const LATE = 'ERR_HTTP_REQUEST_TIMEOUT';

/** What Node.js adds to a parse failure. */
interface ParseFailure extends NodeJS.ErrnoException {
  /** The last bytes read. */
  readonly rawPacket?: Buffer;
  /** How many of these bytes were parsed. */
  readonly bytesParsed?: number;
}

/** A request line with any method, even one that Node.js's parser doesn't know (RFC 9110 §5.6.2, §9.1). */
const REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ (\/[\x21-\x7e]*) HTTP\/1\.[01]\r?\n/;

/** Returns the input from the start of the line that failed to parse. Everything before that line was parsed. */
function refusedLines({ rawPacket, bytesParsed = 0 }: ParseFailure): string {
  const start = (rawPacket?.subarray(0, bytesParsed).lastIndexOf('\n') ?? -1) + 1;
  return rawPacket?.toString('latin1', start) ?? '';
}

function parseFailureProblem(error: ParseFailure, refuseMethod: PublicServerParts['refuseMethod']): Problem {
  const { code } = error;
  if (code === 'HPE_HEADER_OVERFLOW') {
    return { code: 'headers_too_large', detail: 'Request line and headers are too large.' };
  }
  if (code === LATE) {
    return { code: 'request_timeout', detail: 'The request did not arrive completely in time.' };
  }
  const [, target] = (code === 'HPE_INVALID_METHOD' && REQUEST_LINE.exec(refusedLines(error))) || [];
  if (target !== undefined) return refuseMethod(target);
  return { code: 'bad_request', detail: 'These bytes are not an HTTP/1.1 request.' };
}

/** Returns a complete HTTP response, from status line to body, for input that never became a request. */
function parseFailureResponse(problem: Problem, requestId: string, documentationUrl: string | undefined): string {
  const { status, headers, body } = problemResponse(problem, requestId, documentationUrl);
  const fields = ['Date', new Date().toUTCString(), ...headers, 'Connection', 'close'];
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return `${head}\r\n${body}`;
}

interface PublicServerParts {
  readonly app: Express;
  /** Passes requests to the app, and enforces the connection limits. */
  readonly connections: Connections;
  readonly limits: PublicServerLimits;
  /** Undefined: the listener serves HTTP without TLS. */
  readonly tls?: TlsKeys | undefined;
  /** Returns the refusal of a method on a target (path and query), the same as the app's. */
  readonly refuseMethod: (target: string) => Problem;
  /** For problem documents. Called for each refusal, because a reload can change it. */
  documentationUrl(): string | undefined;
  /** Called for each refusal before the app gets a request: parse error, timeout or CONNECT. */
  onUnparsed(code: ProblemCode, requestId: string, peerAddress: string): void;
}

/**
 * Creates the public listener. Uses Node.js's strict parser, and replaces each default that would drop input, delay
 * output or respond without the app.
 */
export function createPublicServer(parts: PublicServerParts): Server | TlsServer {
  const { app, connections, limits, tls, refuseMethod, onUnparsed } = parts;

  function refuse(socket: Socket, problem: Problem): void {
    endWith(socket, () => {
      const requestId = randomUUID();
      onUnparsed(problem.code, requestId, peerAddress(socket));
      return parseFailureResponse(problem, requestId, parts.documentationUrl());
    });
  }

  const options = {
    ...messageClasses(app),
    maxHeaderSize: limits.headerBytes + limits.targetBytes + PARSER_SLACK_BYTES,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: 0, // would also end long uploads; see RequestBody
    connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    requireHostHeader: false, // the guard refuses with a problem document instead
    shouldUpgradeCallback: () => false,
    optimizeEmptyRequests: true,
    noDelay: true,
  };
  const server = tls
    ? createTlsServer({ ...options, ...tlsOptions(tls), handshakeTimeout: limits.headersTimeoutMs })
    : createServer(options);
  connections.serve(server, (req, res) => {
    hideTarget(req);
    // Close after requests with Upgrade, so that what follows is never misparsed: Node.js drops bytes that it read along
    // with one. After Expect without an announced body, one may follow or not.
    const { upgrade, expect } = req.headers;
    if (upgrade !== undefined || (expect !== undefined && !announcesBody(req))) res.shouldKeepAlive = false;
    app(req, res);
  });
  server.maxHeadersCount = 0; // above a limit, Node.js drops headers silently; the guard refuses the request instead
  server.on('connect', (_req: IncomingMessage, socket: Socket) => {
    refuse(socket, { code: 'bad_request', detail: 'CONNECT is not supported: this gateway is not a proxy.' });
  });
  server.on('clientError', (error: ParseFailure, socket: Socket) => {
    const incomplete = connections.incompleteRequest(socket);
    if (!connections.isOpen(socket)) connections.abort(socket, 'tls');
    else if (error.code === 'ECONNRESET') socket.destroy();
    // Unused, as browsers and health checks leave some connections: no response is due.
    else if (error.code === LATE && socket.bytesRead === 0) connections.abort(socket, 'silent');
    else if (incomplete !== undefined) failBody(incomplete);
    else {
      const respond = () => refuse(socket, parseFailureProblem(error, refuseMethod));
      const isExtended =
        error.code === LATE && connections.extendHeaderTimeout(socket, limits.headersTimeoutMs, respond);
      if (!isExtended) respond();
    }
  });
  return server;
}
