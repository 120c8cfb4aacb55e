import type { AccountChange } from '../../shared/accounts/account-store.ts';
import { maxQueuedJobsBound, maxWeight } from '../../shared/accounts/job-settings.ts';
import {
  banAccount,
  createAccount,
  describeAccount,
  describePage,
  rotateKey,
  showAccount,
  unbanAccount,
  updateAccount,
} from '../../shared/admin/accounts.ts';
import { dryRunBan, dryRunRotation } from '../../shared/admin/dry-run-accounts.ts';
import { creditAccount } from '../../shared/admin/credits.ts';
import { readPages } from '../../shared/admin/page.ts';
import { describeRefill, listRefills } from '../../shared/admin/refills.ts';
import type { RefillLogDocument } from '../../shared/ledger/refill-rows.ts';
import { searchAccounts } from '../../shared/admin/search-accounts.ts';
import { toRubNumber } from '../../shared/encoding/money.ts';
import {
  dryRunRotateWebhookSecret,
  rotateWebhookSecret,
  showWebhookSecret,
} from '../../shared/admin/webhook-secrets.ts';
import {
  readInteger,
  readMoney,
  UsageError,
  type AdminContext,
  type AdminVerb,
  type ChangeContext,
} from './command.ts';
import { updateOptions, updateSettings } from './account-update.ts';
import { findAccountId, noSuchAccount } from './find-account.ts';
import { listRequests, requestColumns, requestListOptions, requestListUsage } from './list-requests.ts';

export const accountVerbs: Record<string, AdminVerb> = {
  create: {
    usage: '[--balance 100] [--free-requests 10] [--rpm 60] [--type default]',
    help: 'creates an account with this balance in roubles, and prints its API key',
    positionals: 0,
    options: ['balance', 'free-requests', 'rpm', 'type'],
    isChange: true,
    run: create,
  },
  show: {
    usage: '<account>',
    help: 'shows its balance and limits, why it is banned, and the account area user who has linked it',
    positionals: 1,
    options: [],
    run: show,
  },
  list: {
    usage: '[--search anna] [--banned]',
    help: 'lists all accounts, oldest first; --search those whose id, or a word of whose name, address or note, begins with this; --banned those that are banned, newest first',
    positionals: 0,
    options: ['search'],
    flags: ['banned'],
    run: listAccounts,
  },
  logs: {
    usage: `<account> ${requestListUsage}`,
    help: 'lists its latest requests, with the upstream, the attempts and the reasons of vendors',
    positionals: 1,
    options: requestListOptions,
    columns: requestColumns,
    run: async (context) => await listRequests(context, await findAccountId(context)),
  },
  refills: {
    usage: '<account>',
    help: 'lists what was added to its balance, newest first: credits, redeemed codes, the sign-up',
    positionals: 1,
    options: [],
    run: showRefills,
  },
  credit: {
    usage: '<account> [--balance 5] [--free-requests 1] [--note "invoice 17"] [--key invoice-17]',
    help: 'adds roubles, free requests or both; a negative number subtracts them; the owner sees --note; repeated with the same --key, it credits once',
    positionals: 1,
    options: ['balance', 'free-requests', 'note', 'key'],
    isChange: true,
    run: credit,
  },
  limit: {
    usage: '<account> [--rpm 60] [--max-queued-jobs 10000] [--weight 1]',
    help: 'sets requests per minute, maximum unfinished jobs (0: none), and the weight of its jobs in the queue, 1 to 100',
    positionals: 1,
    options: ['rpm', 'max-queued-jobs', 'weight'],
    isChange: true,
    run: limit,
  },
  update: {
    ...updateOptions,
    isChange: true,
    run: async (context) => await describe(context, await updateSettings(context)),
  },
  ban: {
    usage: '<account> --reason "unpaid bills" [--dry-run]',
    help: 'refuses its requests, and ends those in flight; --dry-run only says what would end',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: ban,
  },
  unban: { usage: '<account>', help: 'lifts a ban', positionals: 1, options: [], isChange: true, run: unban },
  'rotate-key': {
    usage: '<account> [--dry-run]',
    help: 'immediately replaces its API key, and prints the new one; --dry-run only says who uses the key',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: rotate,
  },
  'webhook-secret': {
    usage: '<account> [--rotate [--dry-run]]',
    help: 'prints the secret that signs its webhooks; --rotate replaces it, and both secrets sign for 24 hours; with --dry-run, only says until when a secret that was replaced before still signs, which would end at once',
    positionals: 1,
    options: [],
    flags: ['rotate', 'dry-run'],
    isChange: true,
    run: showSecret,
  },
};

async function create(context: ChangeContext) {
  const { options, config, trail } = context;
  const amountNano = readMoney(options, 'balance', '0');
  const freeRequests = readInteger(options, 'free-requests', 0, 0);
  const requestsPerMinute = readInteger(options, 'rpm', config.defaultRpm, 1, 1_000_000);
  if (amountNano < 0n) throw new UsageError('--balance must not be negative.');
  const userType = options['type'] ?? 'default';
  const created = await createAccount(context, trail, {
    amountNano,
    freeRequests,
    requestsPerMinute,
    userType,
  });
  const { account, apiKey } = created;
  return {
    id: account.id,
    api_key: apiKey,
    balance: account.balance,
    free_requests: account.free_requests,
    requests_per_minute: account.requests_per_minute,
    max_queued_jobs: account.max_queued_jobs,
    weight: account.weight,
    user_type: account.user_type,
  };
}

async function show(context: AdminContext): Promise<object> {
  return await describe(context, await findAccountId(context));
}

async function describe(context: AdminContext, id: string): Promise<object> {
  const account = await showAccount(context, id);
  if (account === null) throw noSuchAccount(id);
  return account;
}

async function listAccounts(context: AdminContext): Promise<unknown> {
  const { options, flags } = context;
  const { search = '' } = options;
  return search === '' && !flags.has('banned') ? readAccounts(context) : findAccounts(context, search);
}

async function* readAccounts({ accounts, hotAccounts }: AdminContext): AsyncGenerator<object> {
  for await (const stored of accounts.list()) {
    const [account] = await hotAccounts.readAll([stored]);
    yield describeAccount(account!, stored);
  }
}

async function showRefills(context: AdminContext): Promise<unknown> {
  const id = await findAccountId(context);
  return describeRefills(
    readPages((after) =>
      listRefills(context, id, { limit: pageSize, after: after === null ? null : Number(after) }),
    ),
  );
}

async function* describeRefills(refills: AsyncIterable<RefillLogDocument>): AsyncGenerator<object> {
  for await (const refill of refills) yield describeRefill(refill);
}

/** Accounts that are read together. */
const pageSize = 100;

const findAccounts = (context: AdminContext, text: string): AsyncGenerator<object> => {
  const filter = context.flags.has('banned') ? { banned: true } : {};
  return readPages(async (after) =>
    describePage(context, await searchAccounts(context, text, { limit: pageSize, after }, filter)),
  );
};

async function credit(context: ChangeContext): Promise<unknown> {
  const { options, hotAccounts, trail } = context;
  if (options['balance'] === undefined && options['free-requests'] === undefined) {
    throw new UsageError('Specify what to credit: --balance, --free-requests or both.');
  }
  const amountNano = readMoney(options, 'balance', '0');
  const freeRequests = readInteger(options, 'free-requests', 0, -1_000_000_000);
  const id = await findAccountId(context);
  await hotAccounts.load(id);
  const { note = null, key = null } = options;
  const credited = await creditAccount(context, trail, id, { amountNano, freeRequests, note, key });
  if (credited.isReplay) context.warn('This key was used before: nothing was credited now.');
  const changedNano = credited.amountNano;
  if (changedNano > amountNano) {
    context.warn(
      `Subtracted ${toRubNumber(-changedNano)} of ${toRubNumber(-amountNano)} roubles: the rest was not available. A ` +
        'balance cannot fall below what running requests have reserved.',
    );
  }
  const account = await describe(context, id);
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

async function limit(context: ChangeContext): Promise<unknown> {
  const change = readLimits(context.options);
  const id = await findAccountId(context);
  await updateAccount(context, context.trail, id, change);
  return await describe(context, id);
}

async function ban(context: ChangeContext): Promise<unknown> {
  const reason = context.options['reason'];
  if (!reason) throw new UsageError('--reason is required, for example --reason "unpaid bills".');
  const id = await findAccountId(context);
  if (context.flags.has('dry-run')) return await dryRunBan(context, id);
  await banAccount(context, context.trail, id, reason);
  return await describe(context, id);
}

async function unban(context: ChangeContext): Promise<unknown> {
  const id = await findAccountId(context);
  await unbanAccount(context, context.trail, id);
  return await describe(context, id);
}

async function rotate(context: ChangeContext): Promise<unknown> {
  const id = await findAccountId(context);
  if (context.flags.has('dry-run')) return await dryRunRotation(context, id);
  const apiKey = await rotateKey(context, context.trail, id);
  if (apiKey === null) throw noSuchAccount(id);
  return { id, api_key: apiKey };
}

async function showSecret(context: ChangeContext): Promise<unknown> {
  const { flags, trail } = context;
  const id = await findAccountId(context);
  if (!flags.has('rotate')) return { secret: await showWebhookSecret(context, trail, id) };
  if (flags.has('dry-run')) return await dryRunRotateWebhookSecret(context, id);
  return { secret: await rotateWebhookSecret(context, trail, id) };
}
