/** What the commands that call the admin API share: their options, arguments and parsers. */
import {
  Argument,
  type Command,
  type CommandOptions,
  InvalidArgumentError,
  Option,
  type OptionValues,
} from '@commander-js/extra-typings';
import { isCustomerId } from '../formats/ids.ts';
import { parseOrigin } from '../formats/path-and-origin.ts';
import { UsageError } from './exit-status.ts';
import type { JsonOption } from './output.ts';

export interface AdminOptions {
  readonly adminUrl: string;
  readonly adminTokenFile?: string | undefined;
}

/** Options of a command that prints a document or a table. */
export interface DocumentOptions extends AdminOptions, JsonOption {}

/** Adds a command that calls the admin API. */
export function adminCommand(parent: Command, name: string, description: string, settings: CommandOptions = {}) {
  return withAdminOptions(parent.command(name, settings).description(description));
}

/** Adds a command that prints a document or a table. */
export function documentCommand(
  parent: Command,
  name: string,
  description: string,
  jsonDescription = 'print the JSON of the admin API',
) {
  return withAdminOptions(parent.command(name).description(description).option('--json', jsonDescription));
}

/** Adds a command that imports a file. `members`: what each line of the file has. */
export function importCommand(parent: Command, description: string, members: string) {
  return documentCommand(parent, 'import', description, 'print the result of each line as JSON')
    .requiredOption('--file <file>', `${members} in each line; - is standard input`)
    .option('--dry-run', 'check every line and import nothing');
}

/** Adds a command that cannot be undone. */
export function destructiveCommand(parent: Command, name: string, description: string) {
  return withAdminOptions(parent.command(name).description(description).option('--yes', 'do not ask for confirmation'));
}

/** Added last, because the help lists the group of a command's first option first. */
function withAdminOptions<Options extends OptionValues>(command: Command<[], Options>) {
  return command
    .addOption(
      new Option('--admin-url <url>', 'URL of the admin API')
        .argParser(parseAdminUrl)
        .default('http://127.0.0.1:8082')
        .helpGroup('Admin API:'),
    )
    .addOption(
      new Option(
        '--admin-token-file <file>',
        'file with the admin token; without it, the token is read from TOLLGATE_ADMIN_TOKEN',
      ).helpGroup('Admin API:'),
    );
}

export function customerArgument() {
  return new Argument('<customer>', 'the id of the customer').argParser(parseCustomerId);
}

export function keyArgument(description = 'the id of the key') {
  return new Argument('<key_id>', description).argParser(parseKeyId);
}

/** @throws InvalidArgumentError, like all parsers here. */
export function parseCustomerId(text: string): string {
  if (isCustomerId(text)) return text;
  throw new InvalidArgumentError(
    'A customer id has 1 to 128 letters, digits and . _ : @ -, and begins with a letter or digit.',
  );
}

function parseKeyId(text: string): string {
  // No URL can have these as a segment. Programs that write to the store directly may choose any other id.
  if (text !== '' && text !== '.' && text !== '..') return text;
  throw new InvalidArgumentError('This cannot be the id of a key.');
}

/** Returns a parser of integers from `min` to `max`. */
export function integerParser(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= min && number <= max) return number;
    throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`);
  };
}

/** Parser of an option that may be repeated. `before`: its earlier values, or the default of its negation. */
export function repeated(value: string, before: string[] | boolean | undefined): string[] {
  return [...(Array.isArray(before) ? before : []), value];
}

function parseAdminUrl(text: string): string {
  const origin = parseOrigin(text);
  if (origin !== undefined) return origin;
  throw new InvalidArgumentError('It must be like http://127.0.0.1:8082, without a path or credentials.');
}

/**
 * Converts an option for a PATCH: `--name …` sets the member, `--no-name` (false) unsets it; undefined is omitted from the
 * JSON and changes nothing.
 */
export function unset<Value>(value: Value | boolean | undefined): Value | null | undefined {
  return typeof value === 'boolean' ? null : value;
}

/** @throws UsageError if no option changes anything. */
export function requireSomeChange(change: Readonly<Record<string, unknown>>): void {
  if (Object.values(change).some((value) => value !== undefined)) return;
  throw new UsageError('nothing to change: give at least one option (see --help)');
}
