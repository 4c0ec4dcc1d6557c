import { expect, it } from 'vitest';
import { parseTraceparent } from '../../../src/observability/tracing/trace-context.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

it.each([
  ['of the first version', `00-${TRACE}-${PARENT}-01`],
  ['that is not sampled', `00-${TRACE}-${PARENT}-00`],
  ['of a later version', `01-${TRACE}-${PARENT}-01`],
  ['of a later version that has more to say', `cc-${TRACE}-${PARENT}-01-what-comes`],
])('a context %s names its trace', (_case, traceparent) =>
  expect(parseTraceparent(traceparent)).toMatchObject({ traceId: TRACE, parentId: PARENT }),
);

it.each([
  ['that is missing', undefined],
  ['that is empty', ''],
  ['of the first version with more to say', `00-${TRACE}-${PARENT}-01-more`],
  ['of the first version with an end that is empty', `00-${TRACE}-${PARENT}-01-`],
  ['of a later version with more that is not separated', `01-${TRACE}-${PARENT}-01more`],
  ['of the version that cannot be', `ff-${TRACE}-${PARENT}-01`],
  ['without a trace', `00-${'0'.repeat(32)}-${PARENT}-01`],
  ['without a parent', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['in capitals', `00-${TRACE.toUpperCase()}-${PARENT}-01`],
  ['with a trace that is too short', `00-${TRACE.slice(1)}-${PARENT}-01`],
  ['with a line break', `00-${TRACE}-${PARENT}-01\n`],
  ['that was sent twice', `00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`],
  ['that was sent twice, in a list', [`00-${TRACE}-${PARENT}-01`, `00-${TRACE}-${PARENT}-01`]],
])('a context %s names none', (_case, traceparent) => expect(parseTraceparent(traceparent)).toBeUndefined());
