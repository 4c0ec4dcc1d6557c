/** The cost of an idle kept-alive connection. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { runLoad } from '../load.ts';
import { formatMebibytes, readSettledMemory } from '../memory.ts';
import { startTollgate } from '../peers.ts';
import { busyWrk, type Scenario } from '../scenario.ts';

const CONNECTIONS = 1_000;
const ANSWER_DEADLINE_MS = 10_000;

export const holdIdleConnections: Scenario = async (surroundings, settings) => {
  const tollgate = await startTollgate(surroundings);
  const { pid } = tollgate.process;
  const load = await busyWrk(surroundings, tollgate);
  // A process that has worked: what one connection costs must not be hidden by what starting costs.
  await runLoad({ ...load, durationMs: settings.sliceMs });
  settings.say('waiting until the memory stays as it is');
  const before = await readSettledMemory(pid);
  const sockets: Socket[] = [];
  try {
    for (let i = 0; i < CONNECTIONS; i += 1) sockets.push(await openIdle(new URL(load.url), load.key));
    settings.say(`${CONNECTIONS} connections are open; waiting again`);
    const after = await readSettledMemory(pid);
    const open = sockets.filter((socket) => socket.readyState === 'open').length;
    const difference = { rss: after.rss - before.rss, pss: after.pss - before.pss };
    return {
      table: {
        head: ['memory', 'MiB before', 'MiB after', 'bytes/connection'],
        rows: (['rss', 'pss'] as const).map((kind) => [
          kind.toUpperCase(),
          formatMebibytes(before[kind]),
          formatMebibytes(after[kind]),
          (difference[kind] / CONNECTIONS).toFixed(0),
        ]),
      },
      remarks: [`${CONNECTIONS.toLocaleString('en')} connections, each after one request.`],
      problems: open === CONNECTIONS ? [] : [`${CONNECTIONS - open} of ${CONNECTIONS} connections were closed`],
    };
  } finally {
    for (const socket of sockets) socket.destroy();
  }
};

/** A connection on which one request got 200. */
async function openIdle(url: URL, key: string): Promise<Socket> {
  const socket = connect(Number(url.port), url.hostname);
  socket.write(`GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  const [start] = (await once(socket, 'data', { signal: AbortSignal.timeout(ANSWER_DEADLINE_MS) })) as [Buffer];
  if (!start.toString('latin1').startsWith('HTTP/1.1 200 ')) throw new Error('a request did not get 200');
  // The rest of the response, and possibly the end of the connection.
  socket.resume().on('error', () => undefined);
  return socket;
}
