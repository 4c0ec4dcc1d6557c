/** Why a connection to an upstream, or a response on it, failed. */

/** The upstream's response is invalid, or must not be passed to a client. */
export class InvalidAnswerError extends Error {
  override readonly name = 'InvalidAnswerError';
}

/** The upstream closed the connection before the response was complete. */
export class ConnectionEndedError extends Error {
  override readonly name = 'ConnectionEndedError';
  readonly code = 'ECONNRESET';

  constructor() {
    super('the other side closed the connection');
  }
}

/** The customer's share of the connections is used up: its queue is full, or the request waited until its deadline. */
export class ShareExceededError extends Error {
  override readonly name = 'ShareExceededError';

  constructor() {
    super('the customer uses up its share of the connections (upstream.max_connections_per_customer)');
  }
}

export class ConnectTimeoutError extends Error {
  override readonly name = 'ConnectTimeoutError';
  readonly code = 'ETIMEDOUT';
}

/** The gateway is closing: no connection is opened any more. */
export class PoolClosedError extends Error {
  override readonly name = 'PoolClosedError';
  readonly code = 'ECONNREFUSED';

  constructor() {
    super('the gateway is closing');
  }
}
