/** deploy/compose.yaml, as its authors wrote it: variables are not replaced. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { REPOSITORY } from './dockerfile.ts';

export const DEPLOY = join(REPOSITORY, 'deploy');

/** Returns the text of a file below deploy. */
export const read = (file: string) => readFileSync(join(DEPLOY, file), 'utf8');

const SERVICE = z.looseObject({
  image: z.string().optional(),
  command: z.array(z.string()).optional(),
  entrypoint: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).optional(),
  volumes: z.array(z.string()).optional(),
  ports: z.array(z.string()).optional(),
  depends_on: z.union([z.array(z.string()), z.record(z.string(), z.unknown())]).optional(),
  healthcheck: z
    .object({ test: z.array(z.string()) })
    .loose()
    .optional(),
  stop_grace_period: z.string().optional(),
  networks: z.union([z.array(z.string()), z.record(z.string(), z.object({ ipv4_address: z.string() }))]),
});
export type Service = z.infer<typeof SERVICE>;

export const text = read('compose.yaml');
export const compose = z
  .looseObject({
    services: z.record(z.string(), SERVICE),
    networks: z.object({
      inside: z.object({ ipam: z.object({ config: z.tuple([z.object({ subnet: z.string() })]) }) }),
    }),
    volumes: z.record(z.string(), z.null()),
  })
  .parse(parse(text));

/** Returns the service of this name. @throws Error if there is none. */
export function service(name: string): Service {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`there is no service ${name}`);
  return found;
}
