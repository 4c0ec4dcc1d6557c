/**
 * The secrets that sign a customer's own notices. Stored apart from its record: no list, export or other program that
 * reads or rewrites records has anything to do with them, and no gateway caches them. Deleted with the customer.
 */
export interface NotifySecretStore {
  /**
   * Sets a customer's secret. The one before stays in force for `graceMs`, and only that one: of two rotations in that
   * time, the first secret is lost. Resolves to whether there was one before; undefined if there is no such customer.
   */
  rotate(customer: string, secret: string, graceMs: number): Promise<boolean | undefined>;
  /** Resolves to the secrets in force, newest first: none, one or two. */
  inForce(customer: string): Promise<readonly string[]>;
}
