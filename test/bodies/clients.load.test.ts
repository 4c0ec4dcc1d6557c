/** Uploads by common HTTP clients, all at once, through a gateway process to Node.js, Express and nginx. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import express from 'express';
import { expect, it, onTestFinished } from 'vitest';
import { startBackend } from '../support/backend.ts';
import { eventually } from '../support/eventually.ts';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { onPath } from '../support/programs.ts';
import { digesting, sha256 } from './support.ts';
import { fromDigest, prepareUpload, ROUTES, UPLOAD_BYTES, uploadAll, uploadFolder } from './uploading-clients.ts';

const NGINX = onPath(['nginx'], { PATH: `${process.env.PATH}:/usr/sbin` });

prepareUpload();

/** Reads whole bodies into memory, as most Express applications do. */
const expressApp = express()
  .use(express.raw({ type: () => true, limit: UPLOAD_BYTES }))
  .use((req, res) => void res.json({ sha256: sha256(req.body) })) as RequestListener;

it('every client uploads to Node.js unchanged', async () => {
  const gateway = await startGatewayProcess({ config: { routes: ROUTES }, answer: digesting });
  const { checksums, expected } = await uploadAll(gateway, fromDigest);
  expect(checksums).toEqual(expected);
});

it('every client uploads to Express unchanged', async () => {
  const gateway = await startGatewayProcess({ config: { routes: ROUTES }, answer: expressApp });
  const { checksums, expected } = await uploadAll(gateway, fromDigest);
  expect(checksums).toEqual(expected);
});

/** Stores the bodies of PUT requests, and proxies other requests. */
function nginxConfig(folder: string, socket: string, backend: string): string {
  return `
    daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
    events { worker_connections 64; }
    http {
      access_log off; client_max_body_size 0; root ${folder}; client_body_temp_path ${folder}/body;
      proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
      server {
        listen unix:${socket};
        location /uploads/PUT/ { dav_methods PUT; }
        location / { proxy_pass ${backend}; }
      }
    }`;
}

it.runIf(NGINX !== undefined)(
  'every client uploads to nginx unchanged, whether it stores the body or proxies it',
  async () => {
    const folder = uploadFolder();
    const backend = await startBackend(digesting);
    onTestFinished(() => backend.close());
    const socket = join(folder, 'nginx.sock');
    await mkdir(join(folder, 'uploads/PUT'), { recursive: true });
    await writeFile(join(folder, 'nginx.conf'), nginxConfig(folder, socket, backend.url));
    const nginx = spawn(NGINX ?? '', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' });
    onTestFinished(() => void nginx.kill());
    await eventually('nginx listens', () => existsSync(socket));
    const upstream = { urls: [`unix:${socket}`] };
    const gateway = await startGatewayProcess({ config: { routes: ROUTES, upstream } });
    const { checksums, expected } = await uploadAll(gateway, (name, response) =>
      name.startsWith('PUT') ? sha256(readFileSync(join(folder, 'uploads', name))) : fromDigest(name, response),
    );
    expect(checksums).toEqual(expected);
  },
);
