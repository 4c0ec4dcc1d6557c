import type { ConnectionRequest } from '../../../src/upstream/http1/request-queue.ts';
import type { UpstreamConnection } from '../../../src/upstream/http1/upstream-connection.ts';

/** A request that uses no connection. Subclasses override what they need. */
export class TestRequest implements ConnectionRequest {
  readonly customer: string;
  readonly isKeyless: boolean;
  readonly isRepeatable: boolean = true;
  previous: ConnectionRequest | undefined;
  next: ConnectionRequest | undefined;
  queue: ConnectionRequest['queue'];
  share: ConnectionRequest['share'];

  constructor(customer: string = crypto.randomUUID(), isKeyless = false) {
    this.customer = customer;
    this.isKeyless = isKeyless;
  }

  onConnection(_connection: UpstreamConnection): boolean {
    return false;
  }

  onError(_error: Error): void {}
}
