import { expect, test } from 'vitest';
import { type AllocationProfile, allocationsByPart, type CpuProfile, timeByPart } from '../../bench/profile.ts';

const FRAMES: readonly (readonly [functionName: string, url: string, children: readonly number[]])[] = [
  ['(root)', '', [2, 3, 4, 9]],
  ['(idle)', '', []],
  ['(garbage collector)', '', []],
  ['parserOnIncoming', 'node:_http_server', [5]],
  ['handle', 'file:///app/src/edge/public-app.ts', [6, 7]],
  ['sha256Hex', 'file:///app/src/formats/api-key.ts', [8]],
  ['writeLatin1String', '', []],
  ['hash', 'node:internal/crypto/hash', []],
  ['start', 'node:internal/main', []],
];

const PROFILE: CpuProfile = {
  nodes: FRAMES.map(([functionName, url, children], i) => ({ id: i + 1, callFrame: { functionName, url }, children })),
  startTime: 1_000,
  samples: [9, 2, 3, 4, 5, 7, 8, 6, 3],
  timeDeltas: [1, 2, 4, 8, 16, 32, 64, 128, 256],
};

test('each sample counts for the innermost part that it was in, and idle time for none', () => {
  expect(Object.fromEntries(timeByPart(PROFILE, 0, 10_000))).toEqual({
    other: 1,
    'garbage collection': 4 + 256,
    "Node.js's HTTP server": 8,
    'guard, route, headers, order of the checks': 16,
    'writing to the two sockets': 32,
    key: 64 + 128,
  });
});

test('only what was sampled between the two times counts', () => {
  expect(Object.fromEntries(timeByPart(PROFILE, 1_004, 1_016))).toEqual({
    'garbage collection': 4,
    "Node.js's HTTP server": 8,
  });
});

test('allocations count for the innermost function of a file, and for its part', () => {
  const frame = (functionName: string, url: string, selfSize: number, children: AllocationProfile['head'][]) => ({
    callFrame: { functionName, url, lineNumber: 9 },
    selfSize,
    children,
  });
  const slice = frame('latin1Slice', '', 640, []);
  const handle = frame('handle', 'file:///app/src/edge/public-app.ts', 100, [
    frame('', 'file:///app/src/upstream/relay.ts', 10, [slice]),
  ]);
  const head = frame('(root)', '', 1, [frame('parserOnIncoming', 'node:_http_server', 200, [handle])]);
  expect(allocationsByPart({ head })).toEqual([
    {
      part: 'connection pool, response parser, relay',
      bytes: 650,
      sites: [{ name: 'anonymous (relay.ts:10)', bytes: 650 }],
    },
    {
      part: "Node.js's HTTP server",
      bytes: 200,
      sites: [{ name: 'parserOnIncoming (node:_http_server:10)', bytes: 200 }],
    },
    {
      part: 'guard, route, headers, order of the checks',
      bytes: 100,
      sites: [{ name: 'handle (public-app.ts:10)', bytes: 100 }],
    },
    { part: 'other', bytes: 1, sites: [{ name: 'Node.js', bytes: 1 }] },
  ]);
});
