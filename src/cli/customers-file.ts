/** Reads the file of a customer import, and finds its faults, also those against the running configuration. */
import { z } from 'zod';
import { DISPLAY_NAME, NEW_CUSTOMER_ID, REQUESTS_PER_HOUR } from '../admin-api/requests.ts';
import type { ConfigDocument } from '../admin-api/responses.ts';
import { printable } from '../admin-client/printable.ts';
import {
  type ImportFile,
  inOrder,
  type Line,
  type LineFault,
  type RawLine,
  readImportFile,
  repetitions,
} from './import-file.ts';

/** The admin API's rules for each member. */
const LINE = z.strictObject({
  id: NEW_CUSTOMER_ID,
  plan: z.string().min(1, 'must not be empty'),
  name: DISPLAY_NAME.optional(),
  // CSV fields are text.
  requests_per_hour: z.preprocess(
    (value) => (typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value),
    REQUESTS_PER_HOUR.optional(),
  ),
});

/** One customer to import, in the admin API's form. */
export type CustomerLine = Line<z.output<typeof LINE>>;

export function readCustomersFile(content: Uint8Array): ImportFile<CustomerLine> {
  const { lines, items, faults } = readImportFile(content, {
    columns: ['id', 'plan', 'name', 'requests_per_hour'],
    missingIn: (header) => {
      const missing = ['id', 'plan'].filter((name) => !header.includes(name));
      return missing.length > 0 ? `no column ${missing.join(' and no column ')}` : undefined;
    },
    schema: LINE,
  });
  const repeated = repetitions(items, 'id', ({ id }) => id);
  return { lines, items, faults: inOrder([...faults, ...repeated]) };
}

/** Returns faults for customers that would have no limit under the running configuration. */
export function planFaults(lines: readonly RawLine[], { plans, overrides }: ConfigDocument): LineFault[] {
  return lines.flatMap(({ line, members: { id, plan, requests_per_hour: own } }) => {
    if (typeof plan !== 'string') return [];
    if (!Object.hasOwn(plans, plan)) {
      return [{ line, what: printable(`plan: must be one of the configured plans: ${Object.keys(plans).join(', ')}`) }];
    }
    const isCustom = plans[plan]?.requests_per_hour === 'custom';
    if (!isCustom || own !== undefined || Object.hasOwn(overrides ?? {}, String(id))) return [];
    return [{ line, what: 'requests_per_hour: missing, and the plan is custom' }];
  });
}
