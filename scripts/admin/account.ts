import { randomUUID } from 'node:crypto';
import { changeAccount } from '../../shared/accounts/change-account.ts';
import type { AccountChange } from '../../shared/accounts/account-store.ts';
import { maxQueuedJobsBound, maxWeight } from '../../shared/accounts/job-settings.ts';
import { replaceKey } from '../../shared/accounts/replace-key.ts';
import { resetUnknownCodes } from '../../shared/accounts/unknown-code-script.ts';
import { runRefill } from '../../shared/accounts/refill-script.ts';
import type { HotAccount } from '../../shared/accounts/hot-account-store.ts';
import { createRefillEvent } from '../../shared/ledger/usage-event.ts';
import { maxBalanceNano, toRubNumber } from '../../shared/encoding/money.ts';
import { WebhookSecretStore } from '../../shared/work/webhook-secret-store.ts';
import {
  readInteger,
  readMoney,
  CommandError,
  UsageError,
  type AdminContext,
  type AdminVerb,
} from './command.ts';
import { findAccountId, noSuchAccount } from './find-account.ts';
import { listRequests, requestColumns, requestListOptions, requestListUsage } from './list-requests.ts';

export const accountVerbs: Record<string, AdminVerb> = {
  create: {
    usage: '[--balance 100] [--free-requests 10] [--rpm 60] [--type default]',
    help: 'creates an account with this balance in roubles, and prints its API key',
    positionals: 0,
    options: ['balance', 'free-requests', 'rpm', 'type'],
    run: createAccount,
  },
  show: {
    usage: '<account>',
    help: 'shows its balance and limits, why it is banned, and the account area user who has linked it',
    positionals: 1,
    options: [],
    run: showAccount,
  },
  logs: {
    usage: `<account> ${requestListUsage}`,
    help: 'lists its latest requests, with the upstream, the attempts and the reasons of vendors',
    positionals: 1,
    options: requestListOptions,
    columns: requestColumns,
    run: async (context) => await listRequests(context, await findAccountId(context)),
  },
  list: { usage: '', help: 'lists all accounts', positionals: 0, options: [], run: listAccounts },
  credit: {
    usage: '<account> [--balance 5] [--free-requests 1]',
    help: 'adds roubles, free requests or both; a negative number subtracts them',
    positionals: 1,
    options: ['balance', 'free-requests'],
    run: creditAccount,
  },
  limit: {
    usage: '<account> [--rpm 60] [--max-queued-jobs 10000] [--weight 1]',
    help: 'sets requests per minute, maximum unfinished jobs (0: none), and the weight of its jobs in the queue, 1 to 100',
    positionals: 1,
    options: ['rpm', 'max-queued-jobs', 'weight'],
    run: limitAccount,
  },
  ban: {
    usage: '<account> --reason "unpaid bills"',
    help: 'refuses its requests, and ends those in flight',
    positionals: 1,
    options: ['reason'],
    run: banAccount,
  },
  unban: { usage: '<account>', help: 'lifts a ban', positionals: 1, options: [], run: unbanAccount },
  'rotate-key': {
    usage: '<account>',
    help: 'immediately replaces its API key, and prints the new one',
    positionals: 1,
    options: [],
    run: rotateKey,
  },
  'webhook-secret': {
    usage: '<account> [--rotate]',
    help: 'prints the secret that signs its webhooks; --rotate replaces it, and both secrets sign for 24 hours',
    positionals: 1,
    options: [],
    flags: ['rotate'],
    run: showWebhookSecret,
  },
};

/** An account as shown to operators. The ban reason is stored only in MongoDB. */
function describeAccount(account: HotAccount, banReason: string | null) {
  return {
    id: account.id,
    user_type: account.userType,
    balance: toRubNumber(account.balanceNano),
    total_balance_added: toRubNumber(account.totalAddedNano),
    free_requests: account.freeRequests,
    requests_per_minute: account.requestsPerMinute,
    max_queued_jobs: account.maxQueuedJobs,
    weight: account.weight,
    last_used_at: account.lastUsedAt?.toISOString() ?? null,
    banned: account.banned,
    ban_reason: account.banned ? banReason : null,
    created_at: account.createdAt.toISOString(),
  };
}

/** Creates an account with the money and limits given in the options. */
export async function createAccount({
  accounts,
  hotAccounts,
  redis,
  config,
  options,
}: Pick<AdminContext, 'accounts' | 'hotAccounts' | 'redis' | 'config' | 'options'>) {
  const amountNano = readMoney(options, 'balance', '0');
  const freeRequests = readInteger(options, 'free-requests', 0, 0);
  const requestsPerMinute = readInteger(options, 'rpm', config.defaultRpm, 1, 1_000_000);
  if (amountNano < 0n) throw new UsageError('--balance must not be negative.');
  if (amountNano > maxBalanceNano) throw new CommandError('A balance cannot exceed 9 000 000 roubles.');
  const { id, apiKey } = await accounts.create({ userType: options['type'] ?? 'default', requestsPerMinute });
  await hotAccounts.load(id);
  if (amountNano > 0n || freeRequests > 0) {
    const event = {
      v: 1 as const,
      refillId: `create-${id}`,
      accountId: id,
      at: Date.now(),
      source: 'admin' as const,
      code: null,
    };
    await runRefill(redis, { amountNano, freeRequests, event });
  }
  const account = describeAccount(await hotAccounts.get(id), null);
  return {
    id,
    api_key: apiKey,
    balance: account.balance,
    free_requests: account.free_requests,
    requests_per_minute: account.requests_per_minute,
    max_queued_jobs: account.max_queued_jobs,
    weight: account.weight,
    user_type: account.user_type,
  };
}

async function showAccount(context: AdminContext) {
  const id = await findAccountId(context);
  const [stored, owner] = await Promise.all([context.accounts.findById(id), describeOwner(context, id)]);
  return { ...describeAccount(await context.hotAccounts.get(id), stored?.banReason ?? null), ...owner };
}

/** Finds the user of the account area to whom the account is linked. `link` is the id of that link. */
async function describeOwner({ web }: AdminContext, accountId: string) {
  const link = await web.links.findByAccount(accountId);
  const user = link === null ? null : await web.users.findById(link.userId);
  return { link: link?._id ?? null, user_id: user?._id ?? null, user_email: user?.email ?? null };
}

async function listAccounts(context: AdminContext): Promise<unknown> {
  return readAccounts(context);
}

async function* readAccounts({ accounts, hotAccounts }: AdminContext): AsyncGenerator<object> {
  for await (const { _id, banReason } of accounts.list()) {
    yield describeAccount(await hotAccounts.get(_id), banReason);
  }
}

async function creditAccount(context: AdminContext): Promise<unknown> {
  const { options, redis, hotAccounts } = context;
  if (options['balance'] === undefined && options['free-requests'] === undefined) {
    throw new UsageError('Specify what to credit: --balance, --free-requests or both.');
  }
  const amountNano = readMoney(options, 'balance', '0');
  const freeRequests = readInteger(options, 'free-requests', 0, -1_000_000_000);
  const id = await findAccountId(context);
  await hotAccounts.load(id);
  const event = createRefillEvent(randomUUID(), id, 'admin');
  const changedNano = (await runRefill(redis, { amountNano, freeRequests, event })) ?? 0n;
  if (changedNano > amountNano) {
    context.warn(
      `Subtracted ${toRubNumber(-changedNano)} of ${toRubNumber(-amountNano)} roubles: the rest was not available. A ` +
        'balance cannot fall below what running requests have reserved.',
    );
  }
  const account = await showAccount(context);
  return amountNano < 0n ? { ...account, taken: toRubNumber(-changedNano) } : account;
}

/** Reads the limits given as options. The others stay unchanged. */
function readLimits(options: AdminContext['options']): AccountChange {
  const read = (name: string, minimum: number, maximum: number): number | undefined =>
    options[name] === undefined ? undefined : readInteger(options, name, 0, minimum, maximum);
  const requestsPerMinute = read('rpm', 1, 1_000_000);
  const maxQueuedJobs = read('max-queued-jobs', 0, maxQueuedJobsBound);
  const weight = read('weight', 1, maxWeight);
  const change = {
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
    ...(maxQueuedJobs === undefined ? {} : { maxQueuedJobs }),
    ...(weight === undefined ? {} : { weight }),
  };
  if (Object.keys(change).length === 0) {
    throw new UsageError('Specify a limit to change: --rpm, --max-queued-jobs or --weight.');
  }
  return change;
}

async function limitAccount(context: AdminContext): Promise<unknown> {
  const change = readLimits(context.options);
  const id = await findAccountId(context);
  await changeAccount(context, id, change);
  return await showAccount(context);
}

async function banAccount(context: AdminContext): Promise<unknown> {
  const reason = context.options['reason'];
  if (!reason) throw new UsageError('--reason is required, for example --reason "unpaid bills".');
  const id = await findAccountId(context);
  await changeAccount(context, id, { banned: true, banReason: reason });
  return await showAccount(context);
}

async function unbanAccount(context: AdminContext): Promise<unknown> {
  const id = await findAccountId(context);
  // The count that may have caused the ban must not ban the account again immediately.
  await resetUnknownCodes(context.redis, id);
  await changeAccount(context, id, { banned: false, banReason: null });
  return await showAccount(context);
}

async function rotateKey(context: AdminContext): Promise<unknown> {
  const id = await findAccountId(context);
  const apiKey = await replaceKey(context, id);
  if (apiKey === null) throw noSuchAccount(id);
  return { id, api_key: apiKey };
}

async function showWebhookSecret(context: AdminContext): Promise<unknown> {
  const { mongo, config, flags } = context;
  const id = await findAccountId(context);
  const secrets = new WebhookSecretStore(mongo.db, config);
  if (flags.has('rotate')) return { secret: await secrets.rotate(id) };
  const secret = await secrets.getOrCreate(id);
  if (secret === null) {
    throw new CommandError(
      'The webhook secret of this account was stored with a different MASTER_KEY. Restore the previous MASTER_KEY, or replace the secret with --rotate.',
    );
  }
  return { secret };
}
