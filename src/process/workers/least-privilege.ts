/**
 * Selects the parts of the primary's configuration and environment that a worker gets. Workers parse client input, so they
 * hold no secret that they don't need: no admin token, and only those environment variables that the Node.js runtime reads.
 * The values of `${NAME}` in the config file reach workers as part of the parsed configuration.
 */
import type { Config } from '../../config/config.ts';
import type { Environment } from '../../config/environment.ts';
import { pathKey } from '../../config/problems.ts';

/** Read by Node.js, the libraries it links, or the operating system's loader. None of them usually holds a secret. */
const RUNTIME_VARIABLES: ReadonlySet<string> = new Set(
  [
    'PATH TZ LANG LC_ALL HOME TMPDIR TERM COLORTERM NO_COLOR',
    'NODE_ENV NODE_OPTIONS NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA NODE_ICU_DATA NODE_COMPILE_CACHE NODE_V8_COVERAGE',
    'SSL_CERT_FILE SSL_CERT_DIR OPENSSL_CONF OPENSSL_MODULES UV_THREADPOOL_SIZE UV_USE_IO_URING',
    'LD_LIBRARY_PATH LD_PRELOAD DYLD_LIBRARY_PATH MALLOC_ARENA_MAX MALLOC_CONF',
    // Windows
    'SYSTEMROOT WINDIR TEMP TMP',
  ].flatMap((line) => line.split(' ')),
);

/**
 * Removes the admin section, the endpoints of notices and the file's unparsed text: only the primary needs them, and all
 * may hold secrets.
 */
export function workerConfig({ admin: _, ...rest }: Config): Config {
  // Named in the worker's error message when a port is taken.
  const ports = [pathKey(['listen', 'port']), pathKey(['check', 'port'])];
  const expressions = new Map([...rest.expressions].filter(([key]) => ports.includes(key)));
  const notices = rest.notices && { ...rest.notices, endpoints: [] };
  return { ...rest, ...(notices && { notices }), expressions, source: { namedFiles: [], digest: '' } };
}

/**
 * Returns the argument for `cluster.fork`, which merges it into the primary's whole environment: the value `undefined`
 * removes a variable.
 */
export function workerEnvironment(primary: Environment): Record<string, undefined> {
  const withheld = Object.keys(primary).filter((name) => !RUNTIME_VARIABLES.has(name.toUpperCase()));
  return Object.fromEntries(withheld.map((name) => [name, undefined]));
}
