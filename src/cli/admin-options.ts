/** Options that all admin API commands share. Loaded for every command line, so it imports little. */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { parseOrigin } from '../config/formats.ts';
import { isCustomerId } from '../store/record-fields.ts';
import { UsageError } from './exit-status.ts';

export interface AdminOptions {
  readonly adminUrl: string;
  readonly adminTokenFile?: string;
}

export interface JsonOption {
  readonly json?: true;
}

/** Options of a command that prints a document or a table. */
export interface DocumentOptions extends AdminOptions, JsonOption {}

/** Options of a command that cannot be undone. */
export interface DestructiveOptions extends AdminOptions {
  readonly yes?: true;
}

const GROUP = 'Admin API:';

/** Adds a command that prints a document or a table. */
export function documentCommand(
  parent: Command,
  name: string,
  description: string,
  jsonDescription = 'print the JSON of the admin API',
): Command {
  return adminCommand(parent, name, description, new Option('--json', jsonDescription));
}

/** Adds a command that cannot be undone. */
export function destructiveCommand(parent: Command, name: string, description: string): Command {
  return adminCommand(parent, name, description, new Option('--yes', 'do not ask for confirmation'));
}

/** Adds a command that calls the admin API. The help lists the group of the first option first. */
export function adminCommand(parent: Command, name: string, description: string, first?: Option): Command {
  const command = parent.command(name).description(description);
  if (first !== undefined) command.addOption(first);
  return command
    .addOption(
      new Option('--admin-url <url>', 'URL of the admin API')
        .argParser(parseAdminUrl)
        .default('http://127.0.0.1:8082')
        .helpGroup(GROUP),
    )
    .addOption(
      new Option(
        '--admin-token-file <file>',
        'file with the admin token; without it, the token is read from TOLLGATE_ADMIN_TOKEN',
      ).helpGroup(GROUP),
    );
}

export function customerArgument(name = '<customer>'): Argument {
  return new Argument(name, 'the id of the customer').argParser(parseCustomerId);
}

export function keyArgument(description = 'the id of the key'): Argument {
  return new Argument('<key_id>', description).argParser(parseKeyId);
}

/** @throws InvalidArgumentError, like all parsers here. */
function parseCustomerId(text: string): string {
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

function parseAdminUrl(text: string): string {
  const origin = parseOrigin(text);
  if (origin !== undefined) return origin;
  throw new InvalidArgumentError('It must be like http://127.0.0.1:8082, without a path or credentials.');
}

/** The value of an option: `--name …` sets it, `--no-name` makes it false. */
export type Unsettable<Value> = Value | false;

/** Converts an option for a PATCH: null unsets the member; undefined is omitted from the JSON and changes nothing. */
export function unset<Value>(value: Unsettable<Value> | undefined): Value | null | undefined {
  return value === false ? null : value;
}

/** @throws UsageError if no option changes anything. */
export function requireSomeChange(change: Readonly<Record<string, unknown>>): void {
  if (Object.values(change).some((value) => value !== undefined)) return;
  throw new UsageError('nothing to change: give at least one option (see --help)');
}
