/**
 * The interface through which the store's parts send commands to Redis: one connection, or in a cluster one to each
 * master. In a cluster, each command is sent to the master that holds its Redis key (called name here).
 */
import type { StoreOp } from '../../store.ts';
import type { RedisClient } from './client.ts';

export interface ScanPlan {
  /**
   * In the order in which they must be scanned: a name that moves during the scan moves from an earlier server to a
   * later one.
   */
  readonly servers: readonly RedisChannel[];
  /** Changes when other servers hold the names, or names are moved: then a scan must start again. */
  readonly layout: string;
}

export interface RedisChannel {
  /** For defining commands before the first call, and for calls outside `run` and `attempt`. */
  readonly client: RedisClient;
  /**
   * Identifies the present connections to all servers of the channel; undefined while one is missing. Changes with each
   * loss.
   */
  readonly sessions: string | undefined;
  /** Returns whether calls are possible now: to every server, or to the one that holds `name`. */
  isUsable(name?: string): boolean;
  /** Returns a number that changes whenever the connection for this name is lost or replaced. */
  sessionOf(name: string): number;
  /**
   * Runs one operation and reports it to the observer. Rejects at once what cannot be sent.
   * @throws StoreUnavailableError when `operation` rejects.
   */
  run<T>(op: StoreOp, operation: (redis: RedisClient) => Promise<T>): Promise<T>;
  /**
   * Like `run`, but does not report to the observer. Rejects with StoreUnavailableError when the operation cannot be
   * sent, else with the error of `operation`.
   */
  attempt<T>(operation: (redis: RedisClient) => Promise<T>): Promise<T>;
  /** For commands that every server must run: in a cluster one channel to each master. */
  readonly servers: readonly RedisChannel[];
  /**
   * Resolves to a plan for scanning all names, from the servers' own present view. Rejects with StoreUnavailableError.
   */
  planScan(op: StoreOp): Promise<ScanPlan>;
  /** Whether there are several servers, each of which can lose data unnoticed by the others. */
  readonly isCluster: boolean;
}
