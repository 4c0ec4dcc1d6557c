/** Profiles as V8 writes them, and which part of the gateway each sample belongs to. */

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
}

/** Of CPU time (`node --cpu-prof`). */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: CallFrame;
    readonly children?: readonly number[];
  }[];
  /** In µs of the monotonic clock. */
  readonly startTime: number;
  readonly samples: readonly number[];
  /** From one sample to the next, in µs; the first from `startTime`. */
  readonly timeDeltas: readonly number[];
}

/** Of allocations on the heap (`HeapProfiler.stopSampling` of the inspector). */
export interface AllocationProfile {
  readonly head: AllocationNode;
}

interface AllocationNode {
  readonly callFrame: CallFrame & { readonly lineNumber: number };
  /** Bytes allocated by the function itself, and by what it calls of V8. */
  readonly selfSize: number;
  readonly children: readonly AllocationNode[];
}

/** What a part of the gateway allocated, and its functions with it; most bytes first. */
export interface PartAllocations {
  readonly part: string;
  readonly bytes: number;
  readonly sites: readonly { readonly name: string; readonly bytes: number }[];
}

const OTHER = 'other';

/** By the name of the function for what is no code of JavaScript, by its file otherwise. */
const PARTS: readonly (readonly [part: string, functions: RegExp | undefined, files: RegExp | undefined])[] = [
  ['writing to the two sockets', /^(?:write(?:Latin1|Utf8)String|writeBuffer|writev)$/, undefined],
  ['garbage collection', /^\(garbage collector\)$/, undefined],
  ['event loop, reading from sockets', /^\(program\)$/, undefined],
  ['log line and metrics', undefined, /\/src\/(?:observability\/(?!tracing)|edge\/recorder)/],
  ['connection pool, response parser, relay', undefined, /\/src\/upstream\/(?!identity)/],
  ['key', undefined, /\/src\/(?:customers\/keys\/|formats\/api-key)/],
  ['quota', undefined, /\/src\/customers\/quota\//],
  ['guard, route, headers, order of the checks', undefined, /\/src\/(?!main|cli|config)/],
  ['http-proxy-middleware', undefined, /\/node_modules\/(?:http-proxy-middleware|httpxy)\//],
  ['Express', undefined, /\/node_modules\//],
  ["Node.js's HTTP server", /^parse$/, /^node:_http/],
];

/**
 * Busy time within `fromMicros` and `untilMicros`, in µs by part. What a part has Node.js do for it, such as to hash or
 * to make a string, counts as its own.
 */
export function timeByPart(profile: CpuProfile, fromMicros: number, untilMicros: number): Map<string, number> {
  const partOf = assignParts(profile);
  const times = new Map<string, number>();
  let nowMicros = profile.startTime;
  profile.samples.forEach((sample, i) => {
    const micros = profile.timeDeltas[i] ?? 0;
    nowMicros += micros;
    const part = partOf.get(sample);
    if (part === undefined || nowMicros < fromMicros || nowMicros > untilMicros) return;
    times.set(part, (times.get(part) ?? 0) + micros);
  });
  return times;
}

/** Of every node but the idle one: its own part, or that of who called it. */
function assignParts({ nodes }: CpuProfile): Map<number, string> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parts = new Map<number, string>();
  const assign = (id: number, callersPart: string): void => {
    const node = byId.get(id);
    if (node === undefined || node.callFrame.functionName === '(idle)') return;
    const part = ownPart(node.callFrame) ?? callersPart;
    parts.set(id, part);
    for (const child of node.children ?? []) assign(child, part);
  };
  const [root] = nodes;
  if (root) assign(root.id, OTHER);
  return parts;
}

/** Allocations of functions by part, as {@link timeByPart} assigns them. */
export function allocationsByPart({ head }: AllocationProfile): PartAllocations[] {
  const parts = new Map<string, Map<string, number>>();
  const add = ({ callFrame, selfSize, children }: AllocationNode, callersPart: string, callersName: string): void => {
    const part = ownPart(callFrame) ?? callersPart;
    const name = callFrame.url === '' ? callersName : siteOf(callFrame);
    const sites = parts.get(part) ?? new Map<string, number>();
    parts.set(part, sites.set(name, (sites.get(name) ?? 0) + selfSize));
    for (const child of children) add(child, part, name);
  };
  add(head, OTHER, 'Node.js');
  const most = (a: { bytes: number }, b: { bytes: number }) => b.bytes - a.bytes;
  return [...parts]
    .map(([part, sites]) => ({
      part,
      bytes: [...sites.values()].reduce((sum, bytes) => sum + bytes, 0),
      sites: [...sites].map(([name, bytes]) => ({ name, bytes })).sort(most),
    }))
    .sort(most);
}

/** Such as `onHead (relay.ts:160)`. */
function siteOf({ functionName, url, lineNumber }: AllocationNode['callFrame']): string {
  const file = url.slice(url.lastIndexOf('/') + 1);
  return `${functionName || 'anonymous'} (${file}:${lineNumber + 1})`;
}

function ownPart({ functionName, url }: CallFrame): string | undefined {
  const found = PARTS.find(([, functions, files]) => (url === '' ? functions?.test(functionName) : files?.test(url)));
  return found?.[0];
}
