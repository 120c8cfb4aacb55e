import { parseArgs } from 'node:util';
import { logUncaught } from '../../shared/runtime/log-uncaught.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { ApiKeyStore } from '../../shared/accounts/api-key-store.ts';
import { RefillCodeStore } from '../../shared/accounts/refill-code-store.ts';
import { HotAccountStore } from '../../shared/billing/hot-account-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { createRedis, waitUntilReady } from '../../shared/redis/redis-client.ts';
import { ConfigError, loadConfig } from '../../shared/runtime/config.ts';
import { createLogger } from '../../shared/runtime/logger.ts';
import { isMongoAway, openMongo } from '../../shared/storage/mongo-client.ts';
import { accountVerbs } from './account.ts';
import { codeVerbs } from './code.ts';
import { FoundDifferences, RefusedError, UsageError, type AdminVerb } from './command.ts';
import { formatTable } from './format-table.ts';
import { ledgerVerbs } from './ledger.ts';
import { modelVerbs } from './model.ts';
import { queueVerbs } from './queue.ts';
import { upstreamVerbs } from './upstream.ts';

logUncaught('admin', 2);

const resources: Record<string, Record<string, AdminVerb>> = {
  account: accountVerbs,
  code: codeVerbs,
  ledger: ledgerVerbs,
  model: modelVerbs,
  queue: queueVerbs,
  upstream: upstreamVerbs,
};

function describeUsage(): string {
  const lines = Object.entries(resources).flatMap(([resource, verbs]) =>
    Object.entries(verbs).map(([verb, { usage }]) => `  ${resource} ${verb} ${usage}`.trimEnd()),
  );
  return `Usage: npm run -s admin -- <resource> <verb> … [--json]\n${lines.join('\n')}\n<account> is an account id or an API key.`;
}

/** Of what is no terminal. */
const usualColumns = 100;

interface CommandLine {
  readonly verb: AdminVerb;
  readonly positionals: readonly string[];
  readonly options: Record<string, string>;
  readonly flags: ReadonlySet<string>;
  readonly json: boolean;
}

function readCommandLine(args: string[]): CommandLine {
  const [resource = '', name = '', ...rest] = args;
  const verbs = Object.hasOwn(resources, resource) ? resources[resource]! : {};
  const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  if (verb === undefined)
    throw new UsageError(
      resource === '' ? 'say what to do' : `there is no "${`${resource} ${name}`.trim()}"`,
    );
  const known = Object.fromEntries(verb.options.map((option) => [option, { type: 'string' as const }]));
  const knownFlags = Object.fromEntries(
    (verb.flags ?? []).map((flag) => [flag, { type: 'boolean' as const }]),
  );
  try {
    const { values, positionals } = parseArgs({
      // An amount may be negative, and would else be taken for an option.
      args: rest.flatMap(joinNegative),
      options: { ...known, ...knownFlags, json: { type: 'boolean' } },
      allowPositionals: true,
    });
    if (positionals.length !== verb.positionals)
      throw new UsageError(`"${resource} ${name}" takes ${verb.usage || 'nothing more'}`);
    const options: Record<string, string> = {};
    const flags = new Set<string>();
    for (const [option, value] of Object.entries(values)) {
      if (typeof value === 'string') options[option] = value;
      else flags.add(option);
    }
    return { verb, positionals, options, flags, json: flags.delete('json') };
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError((error as Error).message);
  }
}

/** `--balance -5` as `--balance=-5`. */
function joinNegative(arg: string, i: number, all: string[]): string[] {
  if (/^-\d/.test(arg) && all[i - 1]?.startsWith('--')) return [];
  const next = all[i + 1];
  return arg.startsWith('--') && next !== undefined && /^-\d/.test(next) ? [`${arg}=${next}`] : [arg];
}

async function run(args: string[], env: NodeJS.ProcessEnv): Promise<void> {
  if (args.includes('--help')) {
    process.stdout.write(`${describeUsage()}\n`);
    return;
  }
  const { verb, positionals, options, flags, json } = readCommandLine(args);
  const config = loadConfig(env);
  const log = createLogger('admin', 'silent');
  const redis = createRedis(config.redisUrl, 'commands', log);
  const mongo = openMongo(config.mongodbUrl, log);
  try {
    await waitUntilReady(redis, 5_000);
    const accounts = new AccountStore(mongo.db, config);
    const ledger = new LedgerStore(mongo.db);
    const hotAccounts = new HotAccountStore(redis, accounts, ledger);
    const codes = new RefillCodeStore(mongo.db);
    const apiKeys = new ApiKeyStore(redis, accounts);
    const stores = { redis, mongo, ledger, accounts, apiKeys, hotAccounts, codes };
    const context = { config, env, log, ...stores, positionals, options, flags };
    const answer = await verb.run(context).catch((error: unknown) => {
      if (!(error instanceof FoundDifferences)) throw error;
      process.exitCode = 1;
      return error.answer;
    });
    const text = json ? JSON.stringify(answer) : formatTable(answer, process.stdout.columns ?? usualColumns);
    process.stdout.write(`${text}\n`);
  } finally {
    await mongo.close();
    redis.disconnect();
  }
}

try {
  await run(process.argv.slice(2), process.env);
} catch (error) {
  const usage = error instanceof UsageError;
  process.stderr.write(`${describeFailure(error)}\n${usage ? `${describeUsage()}\n` : ''}`);
  process.exitCode = usage ? 2 : 1;
}

function describeFailure(error: unknown): string {
  if (error instanceof AppError && error.code === 'service_unavailable')
    return 'Redis or MongoDB does not answer.';
  if (isMongoAway(error)) return 'MongoDB does not answer.';
  const expected = [UsageError, RefusedError, ConfigError, AppError].some((kind) => error instanceof kind);
  return expected || !(error instanceof Error) ? (error as Error).message : (error.stack ?? error.message);
}
