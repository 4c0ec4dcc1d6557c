/** Hooks for actions and for events of the window. */
import { useEffect, useState } from 'preact/hooks';
import { type Failure, failureFrom } from './api.ts';

/** `run` runs one action at a time, also as the handler of a form. `failure`: of the last one. */
export function useAction(action: (form?: HTMLFormElement) => Promise<void>) {
  const [isBusy, setIsBusy] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const run = async (event?: Event) => {
    event?.preventDefault();
    if (isBusy) return;
    setIsBusy(true);
    setFailure(undefined);
    const form = event?.currentTarget as HTMLFormElement | undefined;
    await action(form).catch((error: unknown) => setFailure(failureFrom(error)));
    setIsBusy(false);
  };
  return { isBusy, failure, run };
}

/** Calls the listener for these events of the window while the component is shown. */
export function useWindowEvents(listener: (event: Event) => void, ...names: readonly string[]): void {
  useEffect(() => {
    for (const name of names) window.addEventListener(name, listener);
    return () => {
      for (const name of names) window.removeEventListener(name, listener);
    };
  });
}
