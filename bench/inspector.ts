/** A client of Node.js's inspector (`node --inspect`), for what only the process itself can measure. */
import { once } from 'node:events';

export interface Inspector extends Disposable {
  /** @throws Error when the process refuses the command. */
  call(method: string, params?: object): Promise<unknown>;
  /** The value of an expression, which is plain data. `process.getBuiltinModule` gives it Node.js's modules. */
  evaluate(expression: string): Promise<unknown>;
}

interface Reply {
  readonly id?: number;
  readonly result?: { readonly result?: { readonly value?: unknown } };
  readonly error?: { readonly message: string };
}

export async function connectInspector(port: number): Promise<Inspector> {
  const [target] = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
    webSocketDebuggerUrl: string;
  }[];
  if (target === undefined) throw new Error('the process has no inspector');
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await once(socket, 'open');
  const waiting = new Map<number, (reply: Reply) => void>();
  let lastId = 0;
  socket.addEventListener('message', ({ data }) => {
    const reply = JSON.parse(data) as Reply;
    if (reply.id !== undefined) waiting.get(reply.id)?.(reply);
  });
  async function call(method: string, params: object = {}): Promise<Reply['result']> {
    const id = ++lastId;
    const { promise, resolve } = Promise.withResolvers<Reply>();
    waiting.set(id, resolve);
    socket.send(JSON.stringify({ id, method, params }));
    const { error, result } = await promise;
    waiting.delete(id);
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }
  return {
    call,
    evaluate: async (expression) =>
      (await call('Runtime.evaluate', { expression, returnByValue: true }))?.result?.value,
    [Symbol.dispose]: () => socket.close(),
  };
}
