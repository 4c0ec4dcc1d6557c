/** Servers that forward every request, to be put between the gateway and a backend that records. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request as sendRequest } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../bench/free-port.ts';
import type { HttpSystemSettings } from '../http/support/system.ts';
import { eventually } from '../support/eventually.ts';
import { onPath } from '../support/programs.ts';

type StartServer = NonNullable<HttpSystemSettings['between']>;

const NGINX = onPath(['nginx'], process.env) ?? '';
const HAPROXY = onPath(['haproxy'], process.env) ?? '';

/** By name; undefined if the program is not installed. */
export const SERVERS: Readonly<Record<string, StartServer | undefined>> = {
  'Node.js': startNode,
  nginx: NGINX === '' ? undefined : (url) => startProgram(url, nginxConfig, (file) => [NGINX, '-c', file]),
  HAProxy:
    HAPROXY === '' ? undefined : (url) => startProgram(url, haproxyConfig, (file) => [HAPROXY, '-db', '-f', file]),
};

async function startNode(backendUrl: string) {
  const server = createServer((req, res) => {
    const { method, url, rawHeaders } = req;
    const forwarded = sendRequest(
      `${backendUrl}${url}`,
      { method: method ?? '', headers: rawHeaders as never },
      (received) => {
        res.writeHead(received.statusCode ?? 0, received.rawHeaders);
        received.pipe(res);
      },
    );
    req.pipe(forwarded);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function startProgram(
  backendUrl: string,
  configOf: (folder: string, port: number, backend: string) => string,
  command: (file: string) => readonly [string, ...string[]],
) {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-between-'));
  const port = await freePort();
  const file = join(folder, 'server.conf');
  await writeFile(file, configOf(folder, port, new URL(backendUrl).host));
  const [program, ...args] = command(file);
  const child = spawn(program, args, { stdio: 'ignore' });
  await eventually(`${program} listens`, async () => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect').finally(() => socket.destroy());
    return true;
  });
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      await rm(folder, { recursive: true });
    },
  };
}

function nginxConfig(folder: string, port: number, backend: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  return `daemon off; master_process off; pid ${folder}/pid; error_log /dev/null;
events {}
http {
  access_log off; ${temporary.join(' ')} underscores_in_headers on;
  upstream backend { server ${backend}; keepalive 4; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off;
    }
  }
}
`;
}

function haproxyConfig(_folder: string, port: number, backend: string): string {
  return `defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend gateway
  bind 127.0.0.1:${port}
  default_backend recorder
backend recorder
  server recorder ${backend}
`;
}
