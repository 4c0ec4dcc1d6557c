/** The one place that reads the process's environment, so that everything else takes it as a parameter. */
export function processEnvironment(): NodeJS.ProcessEnv {
  return process.env;
}
