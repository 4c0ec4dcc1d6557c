/**
 * Hooks that load data. Polling happens only while the page is visible, one request at a time, so that open consoles cost
 * the gateway almost nothing. After an action, everything on the page is loaded again.
 */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { call, type Failure, failureFrom, OUTAGE, outageSinceMs, type Page, pathWith, SESSION_PATH } from './api.ts';

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

/** Returns since when the gateway does not respond, wall time in ms. When it responds again, everything is loaded again. */
export function useOutage(): number | undefined {
  const [sinceMs, setSinceMs] = useState(outageSinceMs);
  useEffect(() => {
    const update = () => setSinceMs(outageSinceMs);
    window.addEventListener(OUTAGE, update);
    return () => window.removeEventListener(OUTAGE, update);
  }, []);
  useEffect(() => {
    if (sinceMs === undefined) return;
    const retry = () => void (document.hidden || call('GET', SESSION_PATH).catch(() => undefined));
    const timer = setInterval(retry, RETRY_MS);
    return () => {
      clearInterval(timer);
      refreshAll();
    };
  }, [sinceMs]);
  return sinceMs;
}

export interface Resource<T> {
  /** Of the last success; stays while a later call fails. */
  readonly data: T | undefined;
  readonly failure: Failure | undefined;
  readonly reload: () => void;
}

/** Loads a document. It is loaded again every `everyMs`, if given, and after each action. */
export function useResource<T>(path: string, everyMs = Number.POSITIVE_INFINITY): Resource<T> {
  const [state, setState] = useState<{ path: string; data?: T; failure?: Failure }>({ path });
  const latest = useRef(path);
  latest.current = path;
  const load = useCallback(async () => {
    try {
      const data = await call<T>('GET', path);
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
  readonly rows: readonly T[];
  /** Whether the last page was read. */
  readonly isComplete: boolean;
  readonly isLoading: boolean;
  /** Number of calls so far. A filtered list may need many of them. */
  readonly calls: number;
  readonly failure: Failure | undefined;
  readonly isFiltered: boolean;
  more(): void;
  stop(): void;
}

/** On narrow screens, a row is as high as a paragraph. */
const ROWS_AT_ONCE = matchMedia('(max-width: 600px)').matches ? 20 : 50;

export interface ListOptions {
  /** Reads pages until there are this many more rows. */
  readonly rowsAtOnce?: number;
  /** Filters are applied to the items of a page, so pages have few rows or none. */
  readonly isFiltered?: boolean;
}

/** Items that the gateway reads for one page, if it returns few of them, or all are wanted. */
const LARGE_PAGE_SIZE = 200;

type ListState<T> = Pick<List<T>, 'rows' | 'isLoading' | 'calls' | 'failure'> & { cursor: string | null | undefined };

/** Reads a list page by page, never all at once: `more` reads on. */
export function useList<T>(path: string, { rowsAtOnce = ROWS_AT_ONCE, isFiltered = false }: ListOptions = {}): List<T> {
  const pageSize = isFiltered || rowsAtOnce > LARGE_PAGE_SIZE ? LARGE_PAGE_SIZE : ROWS_AT_ONCE;
  const initial: ListState<T> = {
    rows: [],
    isLoading: true,
    calls: 0,
    failure: undefined,
    cursor: undefined,
  };
  const [state, setState] = useState(initial);
  const running = useRef<AbortController | undefined>(undefined);

  const read = useCallback(
    async (from: ListState<T>) => {
      running.current?.abort();
      const controller = new AbortController();
      const { signal } = controller;
      running.current = controller;
      let { rows, cursor, calls } = from;
      const wanted = rows.length + rowsAtOnce;
      const [base = '', query = ''] = path.split('?');
      const show = (isLoading: boolean, failure?: Failure) => {
        if (signal.aborted) return;
        // A list that cannot be read again keeps its former rows.
        setState((former) =>
          failure && calls === 0 ? { ...former, isLoading, failure } : { rows, cursor, calls, isLoading, failure },
        );
      };
      try {
        do {
          const parameters = {
            ...Object.fromEntries(new URLSearchParams(query)),
            limit: pageSize,
            cursor: cursor ?? '',
          };
          const page: Page<T> = await call('GET', pathWith(base, parameters), { signal });
          rows = [...rows, ...page.items];
          cursor = page.next_cursor;
          calls++;
          show(cursor !== null && rows.length < wanted);
        } while (cursor !== null && rows.length < wanted && !signal.aborted);
      } catch (error) {
        show(false, failureFrom(error));
      }
    },
    [path, rowsAtOnce, pageSize],
  );
  const restart = useCallback(() => read(initial), [read]);
  useEffect(() => {
    setState(initial);
    void restart();
    return () => running.current?.abort();
  }, [restart]);
  useRefresher(restart, Number.POSITIVE_INFINITY);

  return {
    ...state,
    isFiltered,
    isComplete: state.cursor === null,
    more: () => {
      setState({ ...state, isLoading: true });
      void read(state);
    },
    stop: () => {
      running.current?.abort();
      setState({ ...state, isLoading: false });
    },
  };
}
