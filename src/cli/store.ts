/** Commands for the store itself, which they open with the configuration file of a gateway. */
import { printable, printableJson } from '../api/client/printable.ts';
import { systemClock } from '../base/clock.ts';
import { isValidKey } from '../customers/keys/key-state.ts';
import { effectiveLimit, type LimitPolicy } from '../customers/quota/effective-limit.ts';
import { withConfiguredStore } from '../process/configured-store.ts';
import {
  type FaultCode,
  type InspectedRecord,
  missingCustomer,
  type RecordFault,
  recordFault,
} from '../store/record-faults.ts';
import type { ReindexReport } from '../store/records.ts';
import { EXIT } from './exit-status.ts';
import { type JsonOption, print } from './output.ts';

interface Finding {
  readonly record: string;
  readonly fault: RecordFault;
}

interface RecordTally {
  keys: number;
  customers: number;
  /** Records with a fault. */
  faulty: number;
  readonly faults: Partial<Record<FaultCode, number>>;
}

/** Accepts the store's current content as complete, after its data was lost on purpose or for good. */
export async function initialiseStore(file: string): Promise<number> {
  await withConfiguredStore(file, async (store) => store.initialise?.(), { warn: () => undefined });
  process.stdout.write('The content of the store is accepted as complete: unknown keys get 401 again.\n');
  return EXIT.success;
}

/** Repairs the key indexes after other programs wrote keys, and prints what was repaired. */
export async function reindexStore(file: string): Promise<number> {
  const done = await withConfiguredStore(file, async (store) => {
    const report = await store.records.reindex();
    const isEmbedded = store.status().kind === 'embedded';
    return isEmbedded ? 'The embedded store keeps its indexes itself: there is nothing to do.\n' : describe(report);
  });
  process.stdout.write(done);
  return EXIT.success;
}

function describe({ keys, entriesAdded, entriesDropped, passedOver, examples }: ReindexReport): string {
  const done = `${keys} keys are indexed: ${entriesAdded} entries added, ${entriesDropped} without a key deleted.\n`;
  if (examples.length === 0) return done;
  const lines = examples.map(({ record, fault }) => `  ${printable(`${record} ${fault.text}`)}\n`).join('');
  const more = 'at most 10 are listed; "tollgate store check" lists all';
  return `${done}Not indexed: ${describeCounts(passedOver)} (${more}):\n${lines}`;
}

/**
 * Reads all records as stored, and lists their faults. Prints each finding at once, so that memory use does not depend on
 * the size of the store. Resolves to the exit status: failure if a record has a fault. Writes nothing to the store.
 */
export async function checkStore(file: string, { json }: JsonOption): Promise<number> {
  const report = json ? JSON_REPORT : TEXT_REPORT;
  return withConfiguredStore(
    file,
    async (store, config) => {
      const tally: RecordTally = { keys: 0, customers: 0, faulty: 0, faults: {} };
      let separator = report.start;
      for await (const records of store.records.inspect()) {
        const findings = records.flatMap((record) => findingsOf(record, config, tally));
        if (findings.length === 0) continue;
        await print(separator + findings.map(report.line).join(report.separator));
        separator = report.separator;
      }
      await print((separator === report.start ? report.start : '') + report.end(tally));
      return tally.faulty === 0 ? EXIT.success : EXIT.failure;
    },
    { readOnly: true },
  );
}

/** Formats fault counts, such as `no_id 3, wrong_type 1`. */
function describeCounts(counts: Readonly<Partial<Record<FaultCode, number>>>): string {
  return Object.entries(counts)
    .map(([code, count]) => `${code} ${count}`)
    .join(', ');
}

function findingsOf(inspected: InspectedRecord, policy: LimitPolicy, tally: RecordTally): Finding[] {
  const { kind, record } = inspected;
  const faults = [...inspected.faults, ...faultsInUse(inspected, policy)];
  if (kind === 'key') tally.keys += 1;
  else tally.customers += 1;
  if (faults.length > 0) tally.faulty += 1;
  for (const { code } of faults) tally.faults[code] = (tally.faults[code] ?? 0) + 1;
  return faults.map((fault) => ({ record, fault }));
}

/** Returns the faults that depend on the time and the configuration. */
function faultsInUse({ key, customerExists, customer }: InspectedRecord, policy: LimitPolicy): readonly RecordFault[] {
  // A key that is no longer valid does no harm without its customer.
  if (key && customerExists === false && isValidKey(key, Date.now())) return [missingCustomer(key.customer)];
  if (customer === undefined) return [];
  // A temporary limit must cover another one: without it, requests get 403 from its end on.
  const { temporaryLimit: _, ...lasting } = customer;
  const limit = effectiveLimit(lasting, policy, systemClock);
  if (limit.found) return [];
  const { reason, field } = limit;
  return [field === 'plan' ? recordFault('unknown_plan', reason) : recordFault('no_limit', reason, field)];
}

/** The output format of findings, with the text before, between and after them. */
const TEXT_REPORT = {
  start: '',
  separator: '',
  line: ({ record, fault }: Finding) => `${printable(`${record} ${fault.text}`)}\n`,
  end: ({ keys, customers, faulty, faults }: RecordTally) => {
    const result = faulty === 0 ? 'Nothing is wrong.' : `Records with faults: ${faulty} (${describeCounts(faults)}).`;
    return `Keys read: ${keys}, customers read: ${customers}. ${result}\n`;
  },
};

const JSON_REPORT: typeof TEXT_REPORT = {
  start: '{"items":[\n',
  separator: ',\n',
  line: ({ record, fault }) => printableJson({ record, fault: fault.code, text: fault.text }, 0),
  end: (tally) => `\n],${printableJson(tally, 0).slice(1)}\n`,
};
