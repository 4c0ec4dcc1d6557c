import { type Command, Option } from 'commander';
import {
  customerArgument,
  type DestructiveOptions,
  type DocumentOptions,
  destructiveCommand,
  documentCommand,
  integerParser,
  keyArgument,
} from './admin-options.ts';
import type { ImportOptions } from './import.ts';
import type { DaysOptions, FindOptions, NewKeyOptions, RotateOptions, UpdateKeyOptions } from './keys.ts';
import { durationParser, timeParser } from './times.ts';

const load = () => import('./keys.ts');

const EXPIRES_AT = [
  '--expires-at <time>',
  'expiry: 2030-01-31, 2030-01-31T12:00:00Z or a duration from now, such as 90d',
  timeParser('future'),
] as const;
const MAX_GRACE_SECONDS = 31_536_000;

export function addKeyCommands(program: Command): void {
  const keys = program.command('keys').description('manage API keys');

  documentCommand(keys, 'list', 'list the keys of one customer, or all keys')
    .addArgument(customerArgument('[customer]'))
    .action(async (customer: string | undefined, options: DocumentOptions) =>
      (await load()).listKeys(customer, options),
    );

  documentCommand(keys, 'show', 'show one key; never its value')
    .addArgument(keyArgument())
    .action(async (keyId: string, options: DocumentOptions) => (await load()).showKey(keyId, options));

  documentCommand(
    keys,
    'find',
    'find the customer of a key by its value on standard input, which is not sent, or by its first characters',
  )
    .option('--prefix <text>', 'the first characters of the key, at most 12; lists all keys that may start with them')
    .action(async (options: FindOptions) => (await load()).findKeys(options));

  documentCommand(keys, 'create', 'create a key; its value is printed only once, alone on standard output')
    .addArgument(customerArgument())
    .option('--name <name>', 'display name of the key')
    .option(...EXPIRES_AT)
    .action(async (customer: string, options: NewKeyOptions) => (await load()).createKey(customer, options));

  documentCommand(
    keys,
    'import',
    'import existing keys from a file of CSV or JSON Lines; safe to repeat',
    'print the result of each line as JSON',
  )
    .requiredOption('--file <file>', 'customer, value or sha256, name, expires_at in each line; - is standard input')
    .option('--dry-run', 'check every line and import nothing')
    .action(async (options: ImportOptions) => (await import('./keys-import.ts')).importKeys(options));

  documentCommand(keys, 'update', 'change the name or the expiry of a key; members without an option stay unchanged')
    .addArgument(keyArgument())
    .option('--name <name>', 'display name of the key')
    .option('--no-name', 'remove its name')
    .option(...EXPIRES_AT)
    .option('--no-expires-at', 'remove its expiry')
    .action(async (keyId: string, options: UpdateKeyOptions) => (await load()).updateKey(keyId, options));

  documentCommand(keys, 'rotate', 'replace a key; the new value is printed only once, alone on standard output')
    .addArgument(keyArgument('the id of the key to replace'))
    .option(
      '--grace <duration>',
      'how long the old key stays valid, at most until its own expiry: 7d, 12h (default: 1d)',
      durationParser(MAX_GRACE_SECONDS),
    )
    .addOption(
      new Option('--grace-seconds <seconds>', 'the same in seconds')
        .argParser(integerParser(0, MAX_GRACE_SECONDS))
        .conflicts('grace'),
    )
    .action(async (keyId: string, options: RotateOptions) => (await load()).rotateKey(keyId, options));

  destructiveCommand(keys, 'revoke', 'revoke a key immediately and permanently')
    .addArgument(keyArgument())
    .action(async (keyId: string, options: DestructiveOptions) => (await load()).revokeKey(keyId, options));

  documentCommand(keys, 'unused', 'list valid keys that were not used for some days')
    .requiredOption('--days <days>', 'number of days without use, at least', integerParser(1))
    .action(async (options: DaysOptions) => (await load()).listUnusedKeys(options));

  documentCommand(keys, 'expiring', 'list valid keys that expire soon')
    .requiredOption('--days <days>', 'number of days until they expire, at most', integerParser(1))
    .action(async (options: DaysOptions) => (await load()).listExpiringKeys(options));
}
