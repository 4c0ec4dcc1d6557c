/** Commands for API keys. */
import { text } from 'node:stream/consumers';
import { Argument, type Command, Option } from '@commander-js/extra-typings';
import { MAX_GRACE_SECONDS } from '../api/admin/allowed-values.ts';
import type { KeyDocument } from '../api/admin/responses.ts';
import type { ReplyOf } from '../api/admin/routes.ts';
import { printable } from '../api/client/printable.ts';
import {
  containsGeneratedKey,
  isKeyBeginning,
  isPossibleKey,
  MAX_KEY_BEGINNING_LENGTH,
  sha256Hex,
} from '../formats/api-key.ts';
import {
  customerArgument,
  destructiveCommand,
  documentCommand,
  importCommand,
  integerParser,
  keyArgument,
  parseCustomerId,
  repeated,
  requireSomeChange,
  unset,
} from './admin-commands.ts';
import { confirm } from './confirm.ts';
import { connect } from './connect.ts';
import { UsageError } from './exit-status.ts';
import { type JsonOption, print, printDocument, printJson, printList, remark } from './output.ts';
import { type Columns, shortTime } from './table.ts';
import { durationParser, timeParser } from './times.ts';

const EXPIRES_AT = [
  '--expires-at <time>',
  'expiry: 2030-01-31, 2030-01-31T12:00:00Z or a duration from now, such as 90d',
  timeParser('future'),
] as const;

const SCOPE = ['--scope <scope>', 'a scope of the key; repeat it for several', repeated] as const;
const ALLOWED_ADDRESS = [
  '--allowed-address <address>',
  'an address or CIDR block that may use the key; repeat it for several',
  repeated,
] as const;

const REQUESTS_PER_HOUR = [
  '--requests-per-hour <number>',
  'a limit of the key under that of its customer',
  integerParser(1),
] as const;

const COLUMNS: Columns<KeyDocument> = {
  KEY: 'id',
  CUSTOMER: 'customer',
  STATE: 'state',
  PREFIX: 'prefix',
  CREATED: 'created_at',
  EXPIRES: 'expires_at',
  'LAST USED': 'last_used_at',
  LIMIT: 'requests_per_hour',
  USED: 'used',
  NAME: 'name',
};

export function addKeyCommands(program: Command): void {
  const keys = program.command('keys').description('manage API keys');

  documentCommand(keys, 'list', 'list the keys of one customer, or all keys')
    .addArgument(new Argument('[customer]', 'the id of the customer').argParser(parseCustomerId))
    .action(async (customer, options) => {
      const client = await connect(options);
      const found =
        customer === undefined
          ? byCustomer(await client.list('GET /admin/v1/keys'))
          : await client.list('GET /admin/v1/customers/:id/keys', { id: customer });
      await printList('keys', COLUMNS, found, options);
    });

  documentCommand(keys, 'show', 'show one key; never its value')
    .addArgument(keyArgument())
    .action(async (keyId, options) => {
      const client = await connect(options);
      await printKey(await client.call('GET /admin/v1/keys/:keyId', { keyId }), options);
    });

  documentCommand(
    keys,
    'find',
    'find the customer of a key by its value on standard input, which is not sent, or by what is known of it',
  )
    .option(
      '--search <text>',
      'lists all keys whose id, name, first characters or customer contain each word of this text',
    )
    .option('--prefix <text>', 'the first characters of the key, at most 12; lists all keys that may start with them')
    .action(async (options) => {
      const { prefix, search } = options;
      // Not checked by the option's parser, because its message would repeat the text.
      const hasKey = search !== undefined && containsGeneratedKey(search);
      if (hasKey || (prefix !== undefined && !isKeyBeginning(prefix))) {
        throw new UsageError(
          `--${hasKey ? 'search' : 'prefix'} takes at most ${MAX_KEY_BEGINNING_LENGTH} characters of a key; pass a whole key on standard input`,
        );
      }
      // Of a value, only the SHA-256 leaves this machine.
      const known = prefix !== undefined || search !== undefined;
      const query = known ? { prefix, search } : { sha256: sha256Hex(await readKeyValue()) };
      const client = await connect(options);
      const found = await client.list('GET /admin/v1/keys', { query });
      if (found.length > 0 || options.json) await printList('keys', COLUMNS, byCustomer(found), options);
      if (found.length === 0) throw new Error(known ? 'no key matches' : 'there is no such key');
    });

  documentCommand(keys, 'create', 'create a key; its value is printed only once, alone on standard output')
    .addArgument(customerArgument())
    .option('--name <name>', 'display name of the key')
    .option(...EXPIRES_AT)
    .option(...SCOPE)
    .option(...ALLOWED_ADDRESS)
    .option(...REQUESTS_PER_HOUR)
    .action(async (customer, options) => {
      const { name, expiresAt: expires_at, scope: scopes, allowedAddress: allowed_addresses } = options;
      const client = await connect(options);
      const body = { name, expires_at, scopes, allowed_addresses, requests_per_hour: options.requestsPerHour };
      const created = await client.call('POST /admin/v1/customers/:id/keys', { id: customer, body });
      remark(`Key ${printable(created.id)} of customer ${printable(created.customer)}.`);
      await printNewKey(created, options);
    });

  const imported = 'customer, value or sha256, name, expires_at, scopes, allowed_addresses, requests_per_hour';
  importCommand(keys, 'import existing keys from a file of CSV or JSON Lines; safe to repeat', imported).action(
    async (options) => {
      const { importKeys } = await import('./keys-import.ts');
      await importKeys(options);
    },
  );

  documentCommand(keys, 'update', 'change a key; members without an option stay unchanged')
    .addArgument(keyArgument())
    .option('--name <name>', 'display name of the key')
    .option('--no-name', 'remove its name')
    .option(...EXPIRES_AT)
    .option('--no-expires-at', 'remove its expiry')
    .option(...SCOPE)
    .option('--no-scope', 'let it use all routes')
    .option(...ALLOWED_ADDRESS)
    .option('--no-allowed-address', 'let every address use it')
    .option(...REQUESTS_PER_HOUR)
    .option('--no-requests-per-hour', 'remove its limit, so that only that of its customer applies')
    .action(async (keyId, options) => {
      const { name, expiresAt, scope, allowedAddress, requestsPerHour } = options;
      const body = {
        name: unset(name),
        expires_at: unset(expiresAt),
        scopes: unset(scope),
        allowed_addresses: unset(allowedAddress),
        requests_per_hour: unset(requestsPerHour),
      };
      requireSomeChange(body);
      const client = await connect(options);
      await printKey(await client.call('PATCH /admin/v1/keys/:keyId', { keyId, body }), options);
    });

  documentCommand(keys, 'usage', 'show the usage of the last hour of a key that has a limit of its own')
    .addArgument(keyArgument())
    .action(async (keyId, options) => {
      const client = await connect(options);
      const usage = await client.call('GET /admin/v1/keys/:keyId/usage', { keyId });
      if (usage.limit === null && !options.json) return remark('The key has no limit of its own.');
      await printDocument(usage, options);
    });

  destructiveCommand(keys, 'reset-usage', 'reset the usage of a key, so that its own limit is available again')
    .addArgument(keyArgument())
    .action(async (keyId, options) => {
      const client = await connect(options);
      await confirm(options, () => printable(`Reset the usage of key ${keyId}?`));
      await client.call('DELETE /admin/v1/keys/:keyId/usage', { keyId });
      await print(`The usage of key ${printable(keyId)} is reset.\n`);
    });

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
    .action(async (keyId, options) => {
      const body = { grace_seconds: options.grace ?? options.graceSeconds };
      const client = await connect(options);
      const created = await client.call('POST /admin/v1/keys/:keyId/rotate', { keyId, body });
      const [id, customer, replaced] = [created.id, created.customer, created.replaces].map(printable);
      remark(`Key ${id} of customer ${customer} replaces ${replaced}.`);
      remark(`For how long the old key stays valid: tollgate keys show ${replaced}`);
      await printNewKey(created, options);
    });

  destructiveCommand(keys, 'revoke', 'revoke a key immediately and permanently')
    .addArgument(keyArgument())
    .action(async (keyId, options) => {
      const client = await connect(options);
      await confirm(options, async () => {
        const { customer, name } = await client.call('GET /admin/v1/keys/:keyId', { keyId });
        const called = name === null ? '' : ` ("${name}")`;
        return printable(`Revoke key ${keyId}${called} of customer ${customer}?`);
      });
      await client.call('DELETE /admin/v1/keys/:keyId', { keyId });
      await print(`Key ${printable(keyId)} is revoked.\n`);
    });

  for (const [name, description, days, what] of [
    [
      'unused',
      'list valid keys that were not used for some days',
      'without use, at least',
      'were unused for that long',
    ],
    ['expiring', 'list valid keys that expire soon', 'until they expire, at most', 'expire so soon'],
  ] as const) {
    documentCommand(keys, name, description)
      .requiredOption('--days <days>', `number of days ${days}`, integerParser(1))
      .action(async (options) => {
        const client = await connect(options);
        const found = await client.list('GET /admin/v1/keys', { query: { [`${name}_days`]: String(options.days) } });
        await printList(`keys that ${what}`, COLUMNS, byCustomer(found), options);
      });
  }
}

/** Sorts keys by customer and creation time: the store returns them in no useful order. */
function byCustomer(keys: readonly KeyDocument[]): KeyDocument[] {
  const sortKey = ({ customer, created_at, id }: KeyDocument) => `${customer} ${created_at ?? ''} ${id}`;
  return keys.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

async function readKeyValue(): Promise<string> {
  if (process.stdin.isTTY) remark('Type or paste the key, then Enter and Ctrl-D:');
  const value = (await text(process.stdin)).trim();
  if (isPossibleKey(value)) return value;
  throw new UsageError('standard input must have one API key and nothing else (or use --prefix)');
}

/** Prints a key; for people also until when a rotated one is valid. */
async function printKey(key: KeyDocument, options: JsonOption): Promise<void> {
  if (options.json) return printJson(key);
  const { state, expires_at: expiresAt } = key;
  const until = state === 'rotated' && expiresAt !== null ? ` until ${shortTime(expiresAt)}` : '';
  await printDocument({ ...key, state: state + until }, options);
}

/** Prints the remarks before the value: if printing the value fails, they tell which key to revoke. */
async function printNewKey(created: ReplyOf<'POST /admin/v1/customers/:id/keys'>, options: JsonOption): Promise<void> {
  if (created.key === undefined) throw new Error(`the response has no value of key ${printable(created.id)}`);
  remark('Its value is shown only once. Only its hash is stored, so it cannot be shown again:');
  await (options.json ? printJson(created) : print(`${created.key}\n`));
}
