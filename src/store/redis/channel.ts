/**
 * What the parts of the store speak to: one connection, or in a cluster one to each master, with each command sent to the
 * one that holds its name.
 */
import type { StoreOp } from '../store.ts';
import type { RedisClient } from './client.ts';

export interface WalkPlan {
  /** In the order in which they must be walked: a name that moves meanwhile goes from an earlier one to a later one. */
  readonly servers: readonly RedisChannel[];
  /** Another one when other servers hold the names, or names move elsewhere: then a walk must begin again. */
  readonly layout: string;
}

export interface RedisChannel {
  /** For defining commands before the first call, and for calls on a channel that `run` did not ask for. */
  readonly client: RedisClient;
  /** Names what every server of the channel was connected by; undefined while one is missing. Changes with each loss. */
  readonly sessions: string | undefined;
  /** Every server, or the one that holds this name, can be called now. */
  isUsable(name?: string): boolean;
  /** A number that changes whenever the connection that carries this name's commands is lost or is another one. */
  sessionOf(name: string): number;
  /**
   * Runs one operation and tells the observer. What cannot be sent is refused at once.
   * @throws StoreUnavailableError for whatever `operation` rejects with.
   */
  run<T>(op: StoreOp, operation: (redis: RedisClient) => Promise<T>): Promise<T>;
  /**
   * The same without telling the observer. Rejects with StoreUnavailableError when it cannot be sent, and else with what
   * `operation` rejects with.
   */
  attempt<T>(operation: (redis: RedisClient) => Promise<T>): Promise<T>;
  /** For what must be asked of each server: in a cluster one channel to each master. */
  readonly servers: readonly RedisChannel[];
  /** How every name can be found, as the servers themselves have it now. Rejects with StoreUnavailableError. */
  planWalk(op: StoreOp): Promise<WalkPlan>;
  /** Whether what a server loses is not known to the others. */
  readonly isCluster: boolean;
}
