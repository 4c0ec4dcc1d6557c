/** Returns the process's environment. Only this function reads it; all other code takes it as a parameter. */
export function processEnvironment(): NodeJS.ProcessEnv {
  return process.env;
}
