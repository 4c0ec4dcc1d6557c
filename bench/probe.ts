import { Agent, type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';

const DEADLINE_MS = 10_000;

/** One response. */
export interface ProbeResponse {
  readonly status: number;
  readonly body: Buffer;
  /** Received, head included. */
  readonly bytes: number;
}

/** Sends one GET on a connection of its own, kept alive as wrk does. @throws Error when there is no response. */
export async function probe(url: string, key: string | undefined): Promise<ProbeResponse> {
  const agent = new Agent({ keepAlive: true });
  try {
    const headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request(url, { agent, headers, signal: AbortSignal.timeout(DEADLINE_MS) }, resolve)
        .on('error', reject)
        .end();
    });
    const { socket } = response;
    const body = await buffer(response);
    return { status: response.statusCode ?? 0, body, bytes: socket.bytesRead };
  } finally {
    agent.destroy();
  }
}
