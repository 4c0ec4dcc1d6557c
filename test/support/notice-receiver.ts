/** A receiver of notices: a real HTTP server that verifies each notice as the specification's own library does. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { onTestFinished } from 'vitest';
import { newWebhookSecret } from '../../src/formats/webhook-signature.ts';

export interface ReceivedNotice {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface NoticeReceiver {
  /** The section of the configuration that names it. */
  readonly config: Record<string, unknown>;
  /** What it got, repetitions included, in order. */
  readonly received: readonly ReceivedNotice[];
}

/** Closed when the test ends. `respond`: ends the response; 204 by default. */
export async function startNoticeReceiver(
  respond: (res: ServerResponse, notice: ReceivedNotice) => void = (res) => void res.writeHead(204).end(),
): Promise<NoticeReceiver> {
  const secret = newWebhookSecret();
  const webhook = new Webhook(secret);
  const received: ReceivedNotice[] = [];
  const server = createServer(async (req, res) => {
    const headers = req.headers as Record<string, string>;
    const body = webhook.verify(await text(req), headers) as Omit<ReceivedNotice, 'id'>;
    const notice = { id: headers['webhook-id'] ?? '', ...body };
    received.push(notice);
    respond(res, notice);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return { config: { endpoints: [{ url, secret, allow_private: true }] }, received };
}
