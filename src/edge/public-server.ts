import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { problemBody, problemHeaders, problemStatus } from '../problems/document.ts';
import { PROBLEMS, type ProblemCode } from '../problems/table.ts';

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

function parseFailureCode(error: NodeJS.ErrnoException): ProblemCode {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large';
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request_timeout' : 'bad_request';
}

const PARSE_FAILURE_DETAILS: Partial<Record<ProblemCode, string>> = {
  headers_too_large: 'Request line and headers are too large.',
  request_timeout: 'The request did not arrive completely in time.',
  bad_request: 'These bytes are not an HTTP/1.1 request.',
};

/** The whole answer to what never became a request, as bytes. */
function parseFailureAnswer(code: ProblemCode, requestId: string): string {
  const problem = { code, detail: PARSE_FAILURE_DETAILS[code] ?? PROBLEMS[code].title };
  const body = problemBody(problem, requestId);
  const fields = [
    'Date',
    new Date().toUTCString(),
    'X-Request-Id',
    requestId,
    ...problemHeaders(problem, body),
    'Connection',
    'close',
  ];
  let head = `HTTP/1.1 ${problemStatus(code)} ${PROBLEMS[code].title}\r\n`;
  for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return `${head}\r\n${body}`;
}

/** True while an answer is under way on the socket: another one written between would be taken for part of it. */
function isAnswering(socket: Socket): boolean {
  // Node.js keeps the response under way in this private field; its own default handler reads it as well.
  return Boolean((socket as Socket & { _httpMessage?: unknown })._httpMessage);
}

/**
 * The public listener: Node.js's parser, strict, with every default that would drop, delay or answer on its own
 * replaced. `onUnparsed` is told of each connection that sent something else than a request.
 */
export function createPublicServer(
  app: Express,
  limits: PublicServerLimits,
  onUnparsed: (code: ProblemCode, requestId: string, peerAddress: string) => void,
): Server {
  const server = createServer(
    {
      maxHeaderSize: limits.headerBytes + limits.targetBytes + PARSER_SLACK_BYTES,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      requireHostHeader: false, // the guard refuses with a problem document instead
      shouldUpgradeCallback: () => false,
      optimizeEmptyRequests: true,
      noDelay: true,
    },
    app,
  );
  server.maxHeadersCount = 0; // Node.js drops the surplus in silence; the guard counts and refuses
  // Without these listeners Node.js would invite the body, or answer 417, before the guard has seen the request.
  server.on('checkContinue', app);
  server.on('checkExpectation', app);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) {
      socket.destroy();
      return;
    }
    const code = parseFailureCode(error);
    const requestId = randomUUID();
    const peerAddress = socket.remoteAddress ?? '';
    socket.end(parseFailureAnswer(code, requestId));
    onUnparsed(code, requestId, peerAddress);
  });
  return server;
}
