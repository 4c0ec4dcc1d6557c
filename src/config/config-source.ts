/** The files that a configuration was read from; the environment is not included. */
export interface ConfigSource {
  readonly namedFiles: readonly NamedFile[];
  /** Changes with the content of the config file and of each named file. Never expose it: it hashes secrets. */
  readonly digest: string;
}

/** A file that the configuration names with a `…_file` setting. */
export interface NamedFile {
  /** As in the config reference: `admin.token_file`. */
  readonly setting: string;
  /** Absolute path. */
  readonly file: string;
}
