import type { ClientRequest, IncomingMessage } from 'node:http';

const MAX_INTERIM_RESPONSES = 10;

/**
 * Closes the connection of a server that sends more than `maxBytes`, interim responses and framing included, or more than
 * {@link MAX_INTERIM_RESPONSES} of them: an endless stream would occupy the event loop, and each tiny chunk takes memory.
 */
export function boundResponse(request: ClientRequest, maxBytes: number): void {
  let bytes = 0;
  let interimResponses = 0;
  let response: IncomingMessage | undefined;
  request.once('response', (received) => {
    response = received;
  });
  // Destroying the request would end a response without a length as if it were complete.
  const tooMuch = (what: string) => (response ?? request).destroy(new Error(`the server sent more than ${what}`));
  request.on('information', () => {
    interimResponses += 1;
    if (interimResponses > MAX_INTERIM_RESPONSES) tooMuch(`${MAX_INTERIM_RESPONSES} interim responses`);
  });
  request.once('socket', (socket) => {
    const count = (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > maxBytes) tooMuch(`${maxBytes} bytes`);
    };
    socket.on('data', count);
    request.once('close', () => socket.off('data', count));
  });
}

/** Resolves to the response. Later failures of the request change nothing. */
export function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    request.on('error', reject);
    // A response with status 101 is no `response` event and, without a listener for `upgrade`, no error either.
    request.once('close', () => reject(new Error('the connection was closed without a response')));
  });
}
