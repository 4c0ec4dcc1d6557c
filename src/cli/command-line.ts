import { Argument, Command, CommanderError, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { processEnvironment, removeUnverifiedTls } from '../config/environment.ts';
import { ConfigError } from '../config/problems.ts';
import { isKeyHeader } from '../formats/header-names.ts';
import { LOG_FORMATS } from '../formats/path-and-origin.ts';
import { readVersion } from '../process/version.ts';
import { integerParser } from './admin-commands.ts';
import { addAuditCommand } from './audit.ts';
import { addCompleteIdsCommand } from './completion.ts';
import { addCustomerCommands } from './customers.ts';
import { BrokenPipeError, EXIT, FaultyFileError, UsageError } from './exit-status.ts';
import { addKeyCommands } from './keys.ts';
import { addMaintenanceCommand } from './maintenance.ts';
import { addNoticeCommands } from './notices.ts';
import { addPortalCommands } from './portal.ts';
import { addRequestCommands } from './requests.ts';
import { addConfigCommands, addPreviewCommand } from './running-config.ts';
import { addSimulateCommand } from './simulate.ts';
import { addStatusCommand } from './status.ts';
import type { TriedApi } from './try/tried-api.ts';
import { addExplainCommand, addUsageCommands } from './usage.ts';

export interface ProgramParts {
  /** Stops `start`; by default the signals of the process do. */
  readonly stopping?: AbortSignal | undefined;
  /** Starts the API that `try` takes if no URL is given. */
  readonly startSample?: () => Promise<TriedApi>;
}

/**
 * Builds the command tree. Actions call `finish` with an exit status other than success. Commands that need the gateway's
 * own modules import them when they run, so that the others start quickly.
 */
export function buildProgram(finish: (status: number) => void, { stopping, startSample }: ProgramParts = {}): Command {
  const program = new Command('tollgate')
    .description('API gateway: checks API keys, holds customers to their hourly quota, forwards to one backend.')
    .version(readVersion())
    .exitOverride()
    .showHelpAfterError('(see --help)');
  program
    .command('start')
    .description('run the gateway until SIGTERM or SIGINT')
    .requiredOption('--config <file>', 'the YAML configuration file')
    .addOption(new Option('--log-format <format>', 'overrides logging.format').choices(LOG_FORMATS))
    .action(async ({ config, logFormat }) => {
      const { start } = await import('./start.ts');
      finish(await start(config, logFormat, stopping));
    });
  program
    .command('try')
    .description('run a gateway in front of your backend on 127.0.0.1 until Ctrl-C, with a key to try it')
    .argument('[url]', 'the backend: http(s)://host[:port][/base]')
    .option('--openapi <description>', 'forward only what this OpenAPI file, or the file at this URL, describes')
    .option('--requests-per-hour <number>', 'the quota of a customer (default: 1000)', integerParser(1))
    .option('--key-header <name>', 'the header for the key (default: Authorization)', parseKeyHeader)
    .option(
      '--port <number>',
      'the first port to use; the next free ones follow (default: 8080)',
      integerParser(0, 65_535),
    )
    .addOption(
      new Option('--save <folder>', 'start nothing: write the files for production into a new folder').conflicts(
        'port',
      ),
    )
    .action(async (url, options) => {
      const { tryGateway } = await import('./try/try-gateway.ts');
      finish(await tryGateway(url, options, startSample));
    });
  program
    .command('check-config')
    .description('check a configuration file and print all its problems')
    .argument('<file>', 'the YAML configuration file')
    .option('--strict', 'fail if there are warnings')
    .option('--connect', 'also connect to the store and each upstream; writes nothing')
    .action(async (file, options) => {
      const { checkConfig } = await import('./check-config.ts');
      finish(await checkConfig(file, options));
    });
  program
    .command('routes')
    .description('print the routes of an OpenAPI description (3.0 to 3.2) as a section of a configuration file')
    .argument('<description>', 'an OpenAPI file, YAML or JSON, or its URL')
    .option('--base <prefix>', 'what all paths begin with; by default, the path of the first server')
    .option('--check <config>', 'compare with this configuration file instead; exit status 1 if routes differ')
    .action(async (description, options) => {
      const { printRoutes } = await import('./routes.ts');
      finish(await printRoutes(description, options));
    });
  program
    .command('check-key')
    .description('ask the check listener about the key on standard input; counts nothing; exit status 1 if it says no')
    .option('--path <path>', 'path and query of a request; without it, neither route nor scope is checked')
    .option('--method <method>', 'its method, by default GET')
    .option('--address <address>', 'IP address of the client')
    .option('--check-url <url>', 'URL of the check listener', 'http://127.0.0.1:8084')
    .option('--json', 'print the JSON of the check listener')
    .action(async (options) => {
      const { checkKey } = await import('./check-key.ts');
      finish(await checkKey(options));
    });
  addCustomerCommands(program);
  addKeyCommands(program);
  addUsageCommands(program);
  addRequestCommands(program);
  addNoticeCommands(program, finish);
  addMaintenanceCommand(program);
  addPortalCommands(program);
  addExplainCommand(program);
  addPreviewCommand(program);
  addSimulateCommand(program);
  addAuditCommand(program);
  addStatusCommand(program);
  addConfigCommands(program);
  const store = program.command('store').description('maintain the store');
  const storeCommand = (name: string, description: string) =>
    store.command(name).description(description).requiredOption('--config <file>', 'the YAML configuration file');
  const storeModule = () => import('./store.ts');
  storeCommand('init', 'accept the content of the store as complete, after it lost data').action(async ({ config }) =>
    finish(await (await storeModule()).initialiseStore(config)),
  );
  storeCommand('reindex', 'index keys that other programs wrote').action(async ({ config }) =>
    finish(await (await storeModule()).reindexStore(config)),
  );
  storeCommand('check', 'read all records and list their faults; changes nothing')
    .option('--json', 'print JSON')
    .action(async ({ config, ...options }) => finish(await (await storeModule()).checkStore(config, options)));
  addCompleteIdsCommand(program);
  program
    .command('completion')
    .description('print a script that lets a shell complete this command line: source <(tollgate completion bash)')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh']))
    .action(async () => {
      const { printCompletion } = await import('./completion.ts');
      await printCompletion(program);
    });
  return program;
}

const TLS_IS_VERIFIED =
  'warning: NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored, certificates are verified: name your authority in upstream.tls.ca_file or store.tls.ca_file, or in the variable NODE_EXTRA_CA_CERTS';

/** @throws InvalidArgumentError */
function parseKeyHeader(name: string): string {
  if (isKeyHeader(name)) return name;
  throw new InvalidArgumentError('It must be Authorization, or a header without another meaning, such as X-API-Key.');
}

/** Runs one command line. Resolves to the exit status: see {@link EXIT}. */
export async function runCommandLine(args: readonly string[], parts?: ProgramParts): Promise<number> {
  let status: number = EXIT.success;
  const program = buildProgram((result) => {
    status = result;
  }, parts);
  if (removeUnverifiedTls(processEnvironment())) process.stderr.write(`${TLS_IS_VERIFIED}\n`);
  try {
    await program.parseAsync(args, { from: 'user' });
    return status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.success : EXIT.usage;
    if (error instanceof BrokenPipeError) return EXIT.brokenPipe;
    process.stderr.write(`${describeFailure(error)}\n`);
    return error instanceof UsageError ? EXIT.usage : EXIT.failure;
  }
}

function describeFailure(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.join('\n');
  if (error instanceof FaultyFileError) return error.message;
  return `tollgate: ${error instanceof Error ? error.message : String(error)}`;
}
