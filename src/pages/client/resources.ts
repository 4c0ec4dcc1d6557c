/**
 * Hooks that load data. Polling happens only while the page is visible, one request at a time, so that open consoles cost
 * the gateway almost nothing. After an action, everything on the page is loaded again.
 */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import {
  type Address,
  type Failure,
  failureFrom,
  OUTAGE,
  type Outage,
  outage,
  type Page,
  pathWith,
  send,
} from './api.ts';
import { useWindowEvents } from './hooks.ts';
import { keptEntry } from './router.ts';

export const POLL_MS = 10_000;
export const HISTORY_POLL_MS = 60_000;
const TICK_MS = 1000;

interface Refresher {
  readonly everyMs: number;
  dueMs: number;
  run(): Promise<void>;
}

const refreshers = new Set<Refresher>();
let isTicking = false;

async function tick(): Promise<void> {
  if (isTicking || document.hidden) return;
  isTicking = true;
  try {
    for (const refresher of refreshers) {
      if (refresher.dueMs > performance.now()) continue;
      await refresher.run();
      refresher.dueMs = performance.now() + refresher.everyMs;
    }
  } finally {
    isTicking = false;
  }
}

setInterval(tick, TICK_MS);
document.addEventListener('visibilitychange', tick);

/** Loads everything on the page again, without waiting for it. */
export function refreshAll(): void {
  for (const refresher of refreshers) refresher.dueMs = 0;
  // After the next rendering: an action can also leave the page.
  setTimeout(tick);
}

function useRefresher(run: () => Promise<void>, everyMs: number): void {
  useEffect(() => {
    const refresher = { everyMs, dueMs: performance.now() + everyMs, run };
    refreshers.add(refresher);
    return () => void refreshers.delete(refresher);
  }, [run, everyMs]);
}

const RETRY_MS = 2000;

/** Returns what does not respond. When it responds again, everything is loaded again. */
export function useOutage(): Outage | undefined {
  const [current, setCurrent] = useState(outage);
  useWindowEvents(() => setCurrent(outage), OUTAGE);
  useEffect(() => {
    if (current === undefined) return;
    const retry = () => void (document.hidden || send('GET', current.path).catch(() => undefined));
    const timer = setInterval(retry, RETRY_MS);
    return () => {
      clearInterval(timer);
      refreshAll();
    };
  }, [current]);
  return current;
}

export interface Resource<T> {
  /** Of the last success; stays while a later call fails. */
  readonly data: T | undefined;
  readonly failure: Failure | undefined;
  readonly reload: () => void;
}

/** Loads a document. It is loaded again every `everyMs`, if given, and after each action. */
export function useResource<T>(path: Address<T>, everyMs = Number.POSITIVE_INFINITY): Resource<T> {
  const [state, setState] = useState<{ path: string; data?: T; failure?: Failure }>({ path });
  const latest = useRef(path);
  latest.current = path;
  const load = useCallback(async () => {
    try {
      const data = await send<T>('GET', path);
      if (latest.current === path) setState({ path, data });
    } catch (error) {
      if (latest.current !== path) return;
      setState((former) => ({ ...(former.path === path && former), path, failure: failureFrom(error) }));
    }
  }, [path]);
  useEffect(() => void load(), [load]);
  useRefresher(load, everyMs);
  const current = state.path === path ? state : undefined;
  return { data: current?.data, failure: current?.failure, reload: () => void load() };
}

export interface List<T> {
  /** All that were read. */
  readonly rows: readonly T[];
  /** How many of them to show. */
  readonly shown: number;
  /** Whether the last page was read. */
  readonly isComplete: boolean;
  readonly isLoading: boolean;
  /** Number of calls so far. A filtered list may need many of them. */
  readonly calls: number;
  readonly failure: Failure | undefined;
  readonly isFiltered: boolean;
  /** Wall time in ms at which the rows were read; undefined if they are read again every some seconds. */
  readonly asOfMs: number | undefined;
  more(): void;
  /** Reads on to the last page. */
  all(): void;
  stop(): void;
  reload(): void;
}

/** On narrow screens, a row is as high as a paragraph. */
const ROWS_AT_ONCE = matchMedia('(max-width: 600px)').matches ? 20 : 50;

export interface ListOptions<T> {
  /** Reads all pages, because the rows are to be sorted or counted. */
  readonly isWhole?: boolean;
  /** Filters are applied to the items of a page, so pages have few rows or none. */
  readonly isFiltered?: boolean;
  /** How many rows the items become, if not one each. */
  readonly numberOf?: (items: readonly T[]) => number;
}

/** Items that the gateway reads for one page, if it returns few of them, or all are wanted. */
const LARGE_PAGE_SIZE = 200;
/** Of items that become few rows: the most that the gateway returns. */
const FOLDED_PAGE_SIZE = 1000;

type ListState<T> = Pick<List<T>, 'rows' | 'shown' | 'isLoading' | 'calls' | 'failure'> & {
  readonly cursor: string | null | undefined;
  readonly readAtMs: number;
};

const NOTHING_READ: ListState<never> = {
  rows: [],
  shown: ROWS_AT_ONCE,
  isLoading: true,
  calls: 0,
  failure: undefined,
  cursor: undefined,
  readAtMs: 0,
};

/**
 * Reads a list page by page: `more` reads on. An entry of the history keeps its lists: on the way back, the former rows are
 * shown at once, and read again.
 */
export function useList<T>(path: Address<Page<T>>, options: ListOptions<T> = {}): List<T> {
  const { isWhole = false, isFiltered = false, numberOf = (rows) => rows.length } = options;
  const pageSize = isFiltered ? LARGE_PAGE_SIZE : ROWS_AT_ONCE;
  const kept = `${path} ${isWhole}`;
  const [state, setState] = useState<ListState<T>>(NOTHING_READ);
  const latest = useRef(state);
  const running = useRef<AbortController | undefined>(undefined);
  const put = (next: ListState<T>) => {
    latest.current = next;
    keptEntry().lists.set(kept, next);
    setState(next);
  };

  /** `isAgain`: the former rows stay until as many are read. */
  const read = useCallback(
    async (from: ListState<T>, { isAgain = false, isAll = isWhole } = {}) => {
      running.current?.abort();
      const controller = new AbortController();
      const { signal } = controller;
      running.current = controller;
      const former = latest.current;
      const wanted = isAll ? Number.POSITIVE_INFINITY : isAgain ? former.shown : numberOf(from.rows) + ROWS_AT_ONCE;
      let next = { ...from, shown: isAll ? former.shown : Math.max(former.shown, wanted) };
      const isShort = () => next.cursor !== null && numberOf(next.rows) < wanted;
      const show = (isLoading: boolean, failure?: Failure) => {
        if (signal.aborted) return;
        // A list that cannot be read again keeps its former rows.
        const isFormer = isAgain && (isLoading || failure !== undefined);
        put({ ...(isFormer ? former : next), isLoading: isLoading && !isAgain, failure });
      };
      try {
        do {
          const { rows, cursor, calls, readAtMs } = next;
          const readOn = numberOf(rows) < rows.length ? FOLDED_PAGE_SIZE : pageSize;
          const query = { limit: isAll ? Math.max(LARGE_PAGE_SIZE, readOn) : readOn, cursor: cursor ?? undefined };
          const page = await send<Page<T>>('GET', pathWith(path, query), undefined, signal);
          next = {
            ...next,
            rows: [...rows, ...page.items],
            cursor: page.next_cursor,
            calls: calls + 1,
            readAtMs: calls === 0 ? Date.now() : readAtMs,
          };
          show(isShort());
        } while (isShort() && !signal.aborted);
      } catch (error) {
        show(false, failureFrom(error));
      }
    },
    [path, isWhole, pageSize],
  );
  const reload = useCallback(() => read(NOTHING_READ, { isAgain: latest.current.calls > 0 }), [read]);
  useEffect(() => {
    put((keptEntry().lists.get(kept) as ListState<T> | undefined) ?? NOTHING_READ);
    void reload();
    return () => running.current?.abort();
  }, [reload]);
  const isPolled = !isFiltered && state.calls <= 1;
  useRefresher(reload, isPolled ? POLL_MS : Number.POSITIVE_INFINITY);

  return {
    ...state,
    isFiltered,
    isComplete: state.cursor === null,
    asOfMs: isPolled ? undefined : state.readAtMs,
    more: () => {
      const shown = state.shown + ROWS_AT_ONCE;
      const isLoading = state.cursor !== null && (isWhole || numberOf(state.rows) < shown);
      put({ ...state, shown, isLoading });
      if (isLoading) void read(state);
    },
    all: () => {
      setState({ ...state, isLoading: true });
      void read(state, { isAll: true });
    },
    stop: () => {
      running.current?.abort();
      put({ ...state, isLoading: false });
    },
    reload,
  };
}
