/** What a reader of the store finds of a customer's days and months. */
import type { SimulatedStore } from '../../../../tools/simulator/simulated-store.ts';
import { CUSTOMER } from '../../../../tools/simulator/virtual-world.ts';

export interface StoredPeriod {
  readonly startHour: number;
  readonly endHour: number;
  readonly counted: number;
}

/** Returns the periods of a customer as a reader of the store finds them, oldest first. */
export function storedPeriods(store: SimulatedStore, customer = CUSTOMER): StoredPeriod[] {
  const fields = store.periods(customer);
  const found: StoredPeriod[] = [];
  for (const [field, terms] of fields) {
    const [, counter, first] = /^(d?(\d+)):at$/.exec(field) ?? [];
    if (counter === undefined) continue;
    const counted = Number(fields.get(counter) ?? 0);
    found.push({ startHour: Number(first), endHour: Number(terms.split(' ')[0]), counted });
  }
  return found.toSorted((a, b) => a.startHour - b.startHour);
}

export function unitsWithin(hours: ReadonlyMap<number, number>, { startHour, endHour }: Omit<StoredPeriod, 'counted'>) {
  let sum = 0;
  for (const [hour, units] of hours) if (hour >= startHour && hour < endHour) sum += units;
  return sum;
}
