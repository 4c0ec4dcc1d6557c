/**
 * Node.js forgets about a connection that it was handing to a worker which died before it said that it has it: nobody
 * serves it, nobody closes it, and its caller waits for ever. So those on their way are remembered here, and closed when
 * the worker is gone. They are not handed to another one: part of them may have been read.
 *
 * How the messages look is Node.js's own affair (lib/internal/cluster/round_robin_handle.js); should it change, nothing is
 * remembered, and it is as it would be without this.
 */
import type { Worker } from 'node:cluster';

interface Closable {
  close(): void;
}

/** To be called as soon as the worker was forked. */
export function closeWhatDiesWith({ process: child }: Worker): void {
  const onTheirWay = new Map<unknown, Closable>();
  // Of its several forms, none is told apart here.
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = (...args: unknown[]) => {
    const [message, handle] = args;
    if (isHandOver(message) && isClosable(handle)) onTheirWay.set(message.seq, handle);
    return send(...args);
  };
  child.on('internalMessage', (message: { readonly ack?: unknown }) => onTheirWay.delete(message.ack));
  // There may be no 'disconnect': that waits for the worker to take what was on its way.
  child.once('exit', () => {
    for (const handle of onTheirWay.values()) handle.close();
    onTheirWay.clear();
  });
}

function isHandOver(message: unknown): message is { readonly seq: unknown } {
  return typeof message === 'object' && message !== null && 'act' in message && message.act === 'newconn';
}

function isClosable(handle: unknown): handle is Closable {
  return typeof handle === 'object' && handle !== null && 'close' in handle && typeof handle.close === 'function';
}
