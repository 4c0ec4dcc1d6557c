import { readFile } from 'node:fs/promises';
import type { AdminClient } from '../api/client/admin-client.ts';
import { processEnvironment } from '../config/environment.ts';
import { systemReason } from '../config/problems.ts';
import type { AdminOptions } from './admin-commands.ts';
import { UsageError } from './exit-status.ts';

const TOKEN_VARIABLE = 'TOLLGATE_ADMIN_TOKEN';

/**
 * Returns a client with the token from the environment or a file. The command line takes no token, because every user
 * of the machine could read it there.
 */
export async function connect({ adminUrl, adminTokenFile }: AdminOptions): Promise<AdminClient> {
  const token = adminTokenFile === undefined ? tokenOfEnvironment() : await tokenOfFile(adminTokenFile);
  const tokenSource = adminTokenFile ?? TOKEN_VARIABLE;
  if (!/^[\x20-\x7e]+$/.test(token)) {
    throw new Error(`the token in ${tokenSource} cannot be sent: it must be printable ASCII in one line`);
  }
  // Imported here, because it loads the schemas of the whole admin API, which no help needs.
  const { AdminClient } = await import('../api/client/admin-client.ts');
  return new AdminClient({ url: adminUrl, token, tokenSource });
}

function tokenOfEnvironment(): string {
  const token = processEnvironment()[TOKEN_VARIABLE];
  if (token) return token;
  throw new UsageError(`no admin token: set ${TOKEN_VARIABLE}, or name a file with the token by --admin-token-file`);
}

async function tokenOfFile(file: string): Promise<string> {
  const content = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new Error(`${file}: the admin token cannot be read: ${systemReason(error)}`);
  });
  const token = content.replace(/(?:\r?\n)+$/, '');
  if (token === '') throw new Error(`${file}: there is no admin token in it`);
  return token;
}
