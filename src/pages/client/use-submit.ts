import { useState } from 'preact/hooks';
import { type Failure, failureFrom } from './api.ts';

/** Returns the handler of a form that runs one action at a time, whether it runs, and why the last one failed. */
export function useSubmit(action: (form: HTMLFormElement) => Promise<void>) {
  const [isBusy, setIsBusy] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const onSubmit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setIsBusy(true);
    setFailure(undefined);
    await action(event.currentTarget as HTMLFormElement).catch((error: unknown) => setFailure(failureFrom(error)));
    setIsBusy(false);
  };
  return { isBusy, failure, onSubmit };
}
