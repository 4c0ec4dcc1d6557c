import type { Config } from './config.ts';
import type { ConfigDocument } from './document.ts';
import { formatPath, type Path } from './problems.ts';
import type { FileValues } from './schema.ts';

/** Returns where the limit of each plan and override is set: `file:line`, or `default of …`. */
export function limitOrigins(file: string, document: ConfigDocument, values: FileValues): Config['limitOrigins'] {
  const origin = (path: Path) =>
    document.at(path) === undefined ? `default of ${formatPath(path)}` : `${file}:${document.lineOf(path)}`;
  const originsOf = (section: 'plans' | 'overrides') =>
    new Map(Object.keys(values[section]).map((name) => [name, origin([section, name, 'requests_per_hour'])]));
  const plans = originsOf('plans');
  for (const [name, { formerly = [] }] of Object.entries(values.plans)) {
    for (const former of formerly) plans.set(former, plans.get(name) ?? '');
  }
  return { plans, overrides: originsOf('overrides') };
}
