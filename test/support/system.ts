import type { RequestListener } from 'node:http';
import type { Clock } from '../../src/base/clock.ts';
import type { Environment } from '../../src/config/environment.ts';
import { createCustomerWithKey, type NewCustomer } from './admin.ts';
import { type Backend, startBackend } from './backend.ts';
import { closeAtEnd } from './cleanup.ts';
import { EMBEDDED_STORE, type StoreKind, startTestGateway, type TestGateway } from './gateway.ts';

export interface TestSystem {
  readonly backend: Backend;
  readonly gateway: TestGateway;
  /** Of the customer that was asked for. */
  readonly key: string;
}

export interface SystemSettings {
  readonly store?: StoreKind;
  readonly answer?: RequestListener;
  readonly config?: Record<string, Record<string, unknown>>;
  readonly customer?: NewCustomer;
  readonly environment?: Environment;
  /** Of the gateway. */
  readonly clock?: Clock;
}

/** A store, a backend and a gateway between them, with one customer; closed by {@link closeAtEnd}. */
export async function startSystem(settings: SystemSettings = {}): Promise<TestSystem> {
  const { store: kind = EMBEDDED_STORE, answer, config = {}, customer = { id: 'acme', plan: 'starter' } } = settings;
  const store = await kind.start();
  closeAtEnd(() => store.close());
  const backend = await startBackend(answer);
  closeAtEnd(() => backend.close());
  const { environment = {}, clock } = settings;
  const urls = { storeUrl: store.url, upstreamUrl: backend.url };
  const gateway = await startTestGateway({ ...urls, config, environment, ...(clock && { clock }) });
  closeAtEnd(() => gateway.close());
  return { backend, gateway, key: await createCustomerWithKey(gateway, customer) };
}
