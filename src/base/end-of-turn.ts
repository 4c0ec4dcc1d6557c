/**
 * Runs work at the end of the turn of the event loop, like `setImmediate`, and in the same order. Node.js creates an
 * object of some 200 bytes for each immediate; here all work of a turn shares one.
 */
export interface TurnEndListener {
  onTurnEnd(): void;
}

let listeners: TurnEndListener[] = [];

/** Calls `listener` once at the end of this turn, or of the next one if this turn is already ending. */
export function atEndOfTurn(listener: TurnEndListener): void {
  if (listeners.push(listener) === 1) setImmediate(endTurn);
}

function endTurn(): void {
  const ending = listeners.values();
  listeners = [];
  try {
    for (const listener of ending) listener.onTurnEnd();
  } finally {
    for (const listener of ending) atEndOfTurn(listener); // after an exception, the others must not wait for ever
  }
}
