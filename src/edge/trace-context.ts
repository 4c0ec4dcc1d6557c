/** Version, trace id, parent id and flags of a `traceparent`, and whatever later versions append. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-|$)/;
const NO_TRACE = '0'.repeat(32);
const NO_PARENT = '0'.repeat(16);

/**
 * Returns the trace id of a request; undefined without a valid `traceparent` (W3C Trace Context §3.2). Version `ff` is
 * invalid, version `00` has nothing appended, and neither id is all zeros. Node.js joins repeated headers by commas,
 * which makes them invalid.
 */
export function traceId(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const [, version, trace, parent, appended] = TRACEPARENT.exec(traceparent) ?? [];
  if (version === 'ff' || trace === NO_TRACE || parent === NO_PARENT) return undefined;
  return version === '00' && appended === '-' ? undefined : trace;
}
