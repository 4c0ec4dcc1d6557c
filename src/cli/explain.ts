import { EXPLANATION } from '../admin-api/responses.ts';
import { pathOf } from '../admin-client/admin-client.ts';
import type { DocumentOptions } from './admin-options.ts';
import { connect } from './connect.ts';
import { print, printDocument } from './output.ts';
import { formatTable, shortTime } from './table.ts';

export async function explain(customer: string, options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  const answer = await client.get(EXPLANATION, pathOf`/admin/v1/customers/${customer}/explain`);
  if (options.json) return printDocument(answer, options);

  const { usage, instance, ...reasons } = answer;
  const { leases, refuses_for_seconds: refuses, refusals } = instance;
  await printDocument(
    {
      ...reasons,
      used: usage?.used ?? null,
      remaining: usage?.remaining ?? null,
      reset_seconds: usage?.reset_seconds ?? null,
      leases: leases.map(({ units, ends_in_seconds: seconds }) => `${units} for ${seconds} s`).join(', '),
      refuses_for_seconds: refuses,
    },
    options,
  );
  if (refusals.length === 0) return;
  const table = formatTable(
    [
      { title: 'refused with', cell: ({ code }) => code },
      { title: 'times', cell: ({ count }) => count },
      { title: 'first', cell: ({ first_at: at }) => shortTime(at) },
      { title: 'last', cell: ({ last_at: at }) => shortTime(at) },
      { title: 'last key', cell: ({ key_id: id }) => id },
    ],
    refusals,
  );
  await print(`\n${table}`);
}
