/** The environment variable with the folder of the running test's traces. Unset: nothing is traced. */
export const TRACE_FOLDER = 'TOLLGATE_TEST_TRACES';

/** What a gateway's process needs in its environment to write its trace. Empty outside of traced tests. */
export function traceEnvironment(): Readonly<Record<string, string>> {
  const folder = process.env[TRACE_FOLDER];
  if (folder === undefined) return {};
  return { [TRACE_FOLDER]: folder, NODE_OPTIONS: `--import ${new URL('./preload.ts', import.meta.url)}` };
}
