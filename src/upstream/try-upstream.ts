import { systemScheduler } from '../base/clock.ts';
import { connectionFault, type HealthCheckConfig, startHealthCheck } from './health/health-checks.ts';
import { authorityOf, type ConnectOptions, createConnect } from './http1/connect.ts';

const MAX_CONNECT_MS = 5_000;

interface TryUpstreamOptions {
  readonly connectTimeoutMs: number;
  readonly maxHeaderBytes: number;
  readonly healthCheck?: HealthCheckConfig | undefined;
  readonly tls?: ConnectOptions['tls'];
}

/**
 * Connects to an upstream once, over TLS if its URL says so, and sends the health check if one is configured. Resolves
 * to a description of the failure; undefined: none. Takes at most {@link MAX_CONNECT_MS}. Never rejects.
 */
export function tryUpstream(url: URL, options: TryUpstreamOptions): Promise<string | undefined> {
  const { connectTimeoutMs, maxHeaderBytes, healthCheck, tls } = options;
  const connect = createConnect(url, Math.min(connectTimeoutMs, MAX_CONNECT_MS), { tls });
  if (healthCheck) {
    const common = { connect, authority: authorityOf(url), maxHeaderBytes, scheduler: systemScheduler };
    return startHealthCheck({ ...healthCheck, ...common }).fault;
  }
  return new Promise((resolve) => {
    const socket = connect({
      onConnected() {
        socket.destroy();
        resolve(undefined);
      },
      onBytes: () => false,
    });
    socket.on('error', (error) => resolve(connectionFault(error)));
  });
}
