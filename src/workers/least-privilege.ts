/**
 * What a worker gets of the primary's configuration and environment. Workers parse what callers send, so they hold no
 * secret that they don't need: not the admin token, and nothing of the environment but what the Node.js runtime reads.
 * The values of `${NAME}` in the configuration file reach them as part of the parsed configuration.
 */
import type { Config } from '../config/config.ts';
import { pathKey } from '../config/problems.ts';
import type { Environment } from '../config/substitute.ts';

/** Read by Node.js, the libraries it links, or the operating system's loader; none of them is a place for secrets. */
const RUNTIME_VARIABLES: ReadonlySet<string> = new Set([
  'PATH',
  'TZ',
  'LANG',
  'LC_ALL',
  'HOME',
  'TMPDIR',
  'TERM',
  'COLORTERM',
  'NO_COLOR',
  'NODE_ENV',
  'NODE_OPTIONS',
  'NODE_EXTRA_CA_CERTS',
  'NODE_USE_SYSTEM_CA',
  'NODE_ICU_DATA',
  'NODE_COMPILE_CACHE',
  'NODE_V8_COVERAGE',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'OPENSSL_CONF',
  'OPENSSL_MODULES',
  'UV_THREADPOOL_SIZE',
  'UV_USE_IO_URING',
  'LD_LIBRARY_PATH',
  'LD_PRELOAD',
  'DYLD_LIBRARY_PATH',
  'MALLOC_ARENA_MAX',
  'MALLOC_CONF',
  // Windows
  'SYSTEMROOT',
  'WINDIR',
  'TEMP',
  'TMP',
]);

/** The admin listener and reading the file are the primary's alone; what the file has as written may be secret. */
export function workerConfig({ admin: _, ...rest }: Config): Config {
  // What a worker names when its port is taken.
  const expressions = new Map([...rest.expressions].filter(([key]) => key === pathKey(['listen', 'port'])));
  return { ...rest, expressions, source: { namedFiles: [], digest: '' } };
}

/**
 * For `cluster.fork`, which merges its argument into the whole environment of the primary: `undefined` takes a variable
 * away.
 */
export function workerEnvironment(primary: Environment): Record<string, undefined> {
  const withheld = Object.keys(primary).filter((name) => !RUNTIME_VARIABLES.has(name.toUpperCase()));
  return Object.fromEntries(withheld.map((name) => [name, undefined]));
}
