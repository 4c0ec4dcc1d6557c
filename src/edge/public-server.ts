import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { type Problem, problemBody, problemHeaders, problemStatus } from '../problems/document.ts';
import type { ProblemCode } from '../problems/table.ts';
import { messageClasses } from '../strict-app.ts';
import { type TlsKeys, tlsOptions } from '../tls/tls-options.ts';
import type { Connections } from './connections.ts';
import { hideTarget } from './guard.ts';
import { endWith } from './last-answer.ts';

export interface PublicServerLimits {
  readonly headerBytes: number;
  readonly targetBytes: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
}

/** How often Node.js looks for connections that exceed their timeouts: the error of those timeouts. */
const CONNECTIONS_CHECK_MS = 1000;
/**
 * Room for the parser beyond the configured limits. Within it the guard measures and names what is too long, target
 * or headers; the parser's own bound knows only their sum.
 */
const PARSER_SLACK_BYTES = 48 * 1024;

/** Node.js's error code for a request that did not arrive in time. */
const LATE = 'ERR_HTTP_REQUEST_TIMEOUT';

/** What Node.js adds to a parse failure. */
interface ParseFailure extends NodeJS.ErrnoException {
  /** The bytes that were read last. */
  readonly rawPacket?: Buffer;
  /** How many of them were understood. */
  readonly bytesParsed?: number;
}

/** A request line that would be one, but for a method that Node.js's parser doesn't know (RFC 9110 §5.6.2, §9.1). */
const REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ (\/[\x21-\x7e]*) HTTP\/1\.[01]\r?\n/;

/** The rest of the bytes from the begin of the line that was not understood; requests before it were. */
function refusedLines({ rawPacket, bytesParsed = 0 }: ParseFailure): string {
  const start = (rawPacket?.subarray(0, bytesParsed).lastIndexOf('\n') ?? -1) + 1;
  return rawPacket?.toString('latin1', start) ?? '';
}

function parseFailureProblem(error: ParseFailure, refuseMethod: RefuseMethod): Problem {
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

/** The whole answer to what never became a request, as bytes. */
function parseFailureAnswer(problem: Problem, requestId: string, documentationUrl: string | undefined): string {
  const body = problemBody(problem, requestId, documentationUrl);
  const status = problemStatus(problem.code);
  const fields = [
    'Date',
    new Date().toUTCString(),
    'X-Request-Id',
    requestId,
    ...problemHeaders(problem, body),
    'Connection',
    'close',
  ];
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return `${head}\r\n${body}`;
}

/** A connection that was opened and never used, by a browser or a health check, is owed no answer. */
function isSilent({ code }: ParseFailure, { bytesRead }: Socket): boolean {
  return code === LATE && bytesRead === 0;
}

/** The refusal of a method on a target (path and query), as the app would give it. */
type RefuseMethod = (target: string) => Problem;

export interface PublicServerParts {
  readonly app: Express;
  /** Hands the requests to the app. */
  readonly connections: Connections;
  readonly limits: PublicServerLimits;
  /** Left out: the listener speaks HTTP without TLS. */
  readonly tls?: TlsKeys | undefined;
  readonly refuseMethod: RefuseMethod;
  /** For problem documents. Called for each refusal, because a reload can change it. */
  documentationUrl(): string | undefined;
  /** Told of each connection that sent something else than a request. */
  onUnparsed(code: ProblemCode, requestId: string, peerAddress: string): void;
}

/** The public listener: Node.js's parser, strict, with every default that would drop, delay or answer on its own replaced. */
export function createPublicServer(parts: PublicServerParts): Server | TlsServer {
  const { app, connections, limits, tls, refuseMethod, onUnparsed } = parts;

  function refuse(socket: Socket, problem: Problem): void {
    endWith(socket, () => {
      const requestId = randomUUID();
      onUnparsed(problem.code, requestId, socket.remoteAddress ?? '');
      return parseFailureAnswer(problem, requestId, parts.documentationUrl());
    });
  }

  const options = {
    ...messageClasses(app),
    maxHeaderSize: limits.headerBytes + limits.targetBytes + PARSER_SLACK_BYTES,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
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
    // Node.js drops what it read behind a request that asks for another protocol, and after an expectation nobody knows
    // what comes: so that nothing is ever taken for what it is not, these are the last of their connection.
    if (req.headers.upgrade !== undefined || req.headers.expect !== undefined) res.shouldKeepAlive = false;
    app(req, res);
  });
  server.maxHeadersCount = 0; // Node.js drops the surplus in silence; the guard counts and refuses
  server.on('connect', (_req: IncomingMessage, socket: Socket) => {
    refuse(socket, { code: 'bad_request', detail: 'This is no proxy: CONNECT is not offered.' });
  });
  server.on('clientError', (error: ParseFailure, socket: Socket) => {
    if (!connections.isOpen(socket)) connections.cut(socket, 'tls');
    else if (error.code === 'ECONNRESET') socket.destroy();
    else if (isSilent(error, socket)) connections.cut(socket, 'silent');
    else {
      const refuseLate = () => refuse(socket, parseFailureProblem(error, refuseMethod));
      if (error.code !== LATE || !connections.excusesLateHead(socket, limits.headersTimeoutMs, refuseLate))
        refuseLate();
    }
  });
  return server;
}
