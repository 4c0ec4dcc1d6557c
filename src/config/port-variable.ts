import type { Config } from './config.ts';
import { pathKey } from './problems.ts';

/** The environment variable that the port of a listener is taken from, if the file has it as `${NAME}`. */
export function portVariable({ expressions }: Config, section: 'listen' | 'ops' | 'admin'): string | undefined {
  return /^\$\{(\w+)/.exec(expressions.get(pathKey([section, 'port'])) ?? '')?.[1];
}
