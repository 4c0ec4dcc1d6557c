import type { Store } from '../../src/store/store.ts';
import type { RecordingObserver } from './contract.ts';

/** An empty store and who watches it; closed when the test that opened it ends. */
export interface OpenedStore extends Pick<Store, 'records' | 'keyUses' | 'audit' | 'windows' | 'invalidations'> {
  readonly store: Store;
  readonly observer: RecordingObserver;
}
