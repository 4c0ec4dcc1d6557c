import type { Config } from './config.ts';
import { pathKey } from './problems.ts';

/** Returns the environment variable that sets a listener's port, if the file has the port as `${NAME}`. */
export function portVariable({ expressions }: Config, section: 'listen' | 'ops' | 'admin'): string | undefined {
  return /^\$\{(\w+)/.exec(expressions.get(pathKey([section, 'port'])) ?? '')?.[1];
}
