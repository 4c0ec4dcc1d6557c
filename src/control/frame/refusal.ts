/** Refusals of requests, and lookups of records that refuse with `not_found`. */
import { isCustomerId } from '../../formats/ids.ts';
import type { Problem } from '../../http/problems/document.ts';
import type { ProblemCode } from '../../http/problems/table.ts';
import type { CustomerRecord, KeyRecord } from '../../store/record-fields.ts';
import type { RecordStore } from '../../store/records.ts';

/** Thrown by admin handlers to respond with a problem document, which error-handler.ts writes. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly problem: Problem;

  /** `members`: additional members of the problem document, for programs. `headers`: flat. */
  constructor(code: ProblemCode, detail: string, members: Problem['members'] = {}, headers: Problem['headers'] = []) {
    super(`${code}: ${detail}`);
    this.problem = { code, detail, members, headers };
  }
}

/** Programs that write records directly choose their own key ids, up to this length. */
const MAX_KEY_ID_LENGTH = 256;

/** Returns the customer. @throws Refusal `not_found`, also for an invalid customer id. */
export async function requireCustomer(
  records: Pick<RecordStore, 'findCustomerRecord'>,
  id: string,
): Promise<CustomerRecord> {
  return (await records.findCustomerRecord(possibleCustomerId(id))) ?? noSuchCustomer();
}

/** Returns the key. @throws Refusal `not_found`, also for an invalid key id. */
export async function requireKey(records: Pick<RecordStore, 'findKeyById'>, id: string): Promise<KeyRecord> {
  return (await records.findKeyById(possibleKeyId(id))) ?? noSuchKey();
}

export function possibleCustomerId(id: string): string {
  return isCustomerId(id) ? id : noSuchCustomer();
}

export function possibleKeyId(id: string): string {
  return id.length <= MAX_KEY_ID_LENGTH ? id : noSuchKey();
}

/** Does not repeat the id, as {@link noSuchKey}: clients send whole keys by mistake. */
export function noSuchCustomer(): never {
  throw new Refusal('not_found', 'There is no customer with this id.');
}

export function noSuchKey(): never {
  throw new Refusal('not_found', 'There is no key with this id.');
}
