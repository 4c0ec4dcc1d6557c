import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Document } from 'yaml';
import { systemReason } from '../../config/problems.ts';
import { hostOf } from '../../formats/host.ts';
import { isLoopback } from '../../formats/url.ts';
import { UsageError } from '../exit-status.ts';
import { curlCommand, type TriedApi } from './tried-api.ts';

interface Installation {
  readonly api: TriedApi;
  readonly config: Document;
  readonly keyHeader: string;
}

const TEMPLATES = new URL('../../../config/compose-template/', import.meta.url);

/** Writes gateway.yaml, compose.yaml and README.md into a folder, which must be empty or absent. */
export async function saveInstallation(folder: string, { api, config, keyHeader }: Installation): Promise<void> {
  const { example, url } = api;
  // In a container, localhost is the container itself.
  const host = isLoopback(hostOf(url)) ? 'host.docker.internal' : url.hostname;
  const port = url.port && `:${url.port}`;
  const upstreamUrl = `${url.protocol}//${host}${port}${url.pathname.replace(/\/$/, '')}`;
  const texts: Readonly<Record<string, string>> = {
    '{{UPSTREAM_URL}}': upstreamUrl,
    '{{CURL}}': curlCommand(example, `http://localhost:8080${example.target}`, keyHeader, 'tg_…'),
  };
  const template = async (name: string) =>
    (await readFile(new URL(name, TEMPLATES), 'utf8')).replace(/\{\{\w+\}\}/g, (mark) => texts[mark] ?? mark);
  const files = {
    'gateway.yaml': String(config),
    'compose.yaml': await template('compose.yaml'),
    'README.md': await template('README.md'),
  };
  await mkdir(folder, { recursive: true }).catch((error) => {
    const reason = error.code === 'EEXIST' || error.code === 'ENOTDIR' ? 'it is a file' : systemReason(error);
    throw new UsageError(`${folder} cannot be a new folder: ${reason}; name another one`);
  });
  if ((await readdir(folder)).length > 0) throw new UsageError(`${folder} is not empty; name a new folder`);
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { flag: 'wx' });
}
