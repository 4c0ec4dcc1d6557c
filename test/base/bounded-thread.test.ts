import { expect, it } from 'vitest';
import { runInThread } from '../../src/base/bounded-thread.ts';

const entry = (code: string) =>
  new URL(`data:text/javascript,${encodeURIComponent(`import { parentPort } from 'node:worker_threads'; ${code}`)}`);

it('a thread that gets no CPU time, as on a busy machine, is not ended', async () => {
  const wait = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500); parentPort.postMessage("done");';
  expect(await runInThread(entry(wait), undefined, { cpuMs: 1000, heapMebibytes: 64 })).toBe('done');
});

it('a thread that never ends is ended at its limit of CPU time', async () => {
  const running = runInThread(entry('for (;;);'), undefined, { cpuMs: 200, heapMebibytes: 64 });
  await expect(running).rejects.toThrow('takes longer than 0.2 s to parse; make it smaller');
});
