/** Thrown for a cursor that this store did not issue. */
export class InvalidCursorError extends Error {
  override readonly name = 'InvalidCursorError';
}

/**
 * Thrown when the store replied with an error or an unexpected value, too late or not at all. Never means "no such
 * record".
 */
export class StoreUnavailableError extends Error {
  override readonly name: string = 'StoreUnavailableError';
}

/** Thrown when the store counted nothing, because it refused the call or did not get it. */
export class NotRunError extends StoreUnavailableError {
  override readonly name = 'NotRunError';
}

/** Thrown for a record that exists but is malformed, so it cannot be read. The store itself works. */
export class DamagedRecordError extends StoreUnavailableError {
  override readonly name = 'DamagedRecordError';
}

/** Why a record that is missing from the store may still have existed. */
const DOUBTS = {
  wiped: 'the store has lost its data',
  empty: 'the store has no customers and keys',
  evicted: 'the store has evicted keys',
};

/** Thrown when a record is missing from the store, but this does not prove that it never existed. */
export class StoreDoubtError extends StoreUnavailableError {
  override readonly name = 'StoreDoubtError';
  readonly doubt: keyof typeof DOUBTS;

  constructor(doubt: keyof typeof DOUBTS) {
    super(`${DOUBTS[doubt]}, so a missing record may have existed`);
    this.doubt = doubt;
  }
}
