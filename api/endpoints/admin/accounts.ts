import type { AccountChange } from '../../../shared/accounts/account-store.ts';
import { readAccountSettings } from '../../../shared/accounts/read-account-settings.ts';
import {
  banAccount as banInStores,
  createAccount as createInStores,
  describePage,
  rotateKey,
  showAccount,
  unbanAccount as unbanInStores,
  updateAccount as updateInStores,
} from '../../../shared/admin/accounts.ts';
import { dryRunBan, dryRunRotation } from '../../../shared/admin/dry-run-accounts.ts';
import { creditAccount as creditInStores } from '../../../shared/admin/credits.ts';
import { describeRefill, listRefills } from '../../../shared/admin/refills.ts';
import { listAccounts as listAll, searchAccounts } from '../../../shared/admin/search-accounts.ts';
import {
  dryRunRotateWebhookSecret,
  rotateWebhookSecret as rotateInStores,
  showWebhookSecret,
} from '../../../shared/admin/webhook-secrets.ts';
import { dryRunUnlink, notLinked, unlinkUser } from '../../../shared/admin/users.ts';
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { maskSecrets } from '../../../shared/contract/mask-secrets.ts';
import { parseRub, toRubNumber } from '../../../shared/encoding/money.ts';
import type { AdminAccountPath, UpdateAccountRequest } from '../../contract/admin/accounts.ts';
import { operations } from '../../contract/operations.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { readIdempotencyKey } from '../../http/request/idempotency-key.ts';
import { inDatabaseTurn } from '../../http/request/in-database-turn.ts';
import { readFromDatabase } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';
import { defineAdminEndpoint, pageOf, presentPage, trailOf } from './define-admin-endpoint.ts';
import { listAddresses } from './list-addresses.ts';
import { toUserDeps } from './to-user-deps.ts';

type AccountContext = ApiContext & { readonly state: { readonly path: AdminAccountPath } };

/** The message does not repeat an API key, because responses are often stored. */
export const noSuchAccount = (id: string): AppError =>
  new AppError('not_found', {
    message: `There is no account ${JSON.stringify(maskSecrets(id).slice(0, 50))}. GET /v1/admin/accounts lists and searches accounts. An API key is not an id.`,
  });

/** Finds the account in the path. @throws AppError `not_found` */
export async function findAccountId({ accounts }: Services, { state }: AccountContext): Promise<string> {
  const { account_id: id } = state.path;
  if ((await accounts.findById(id)) === null) throw noSuchAccount(id);
  return id;
}

async function show(services: Services, id: string): Promise<object> {
  const account = await showAccount(services, id);
  if (account === null) throw noSuchAccount(id);
  return account;
}

/** @throws AppError `validation_failed` if the amount has more than nine decimals */
export function readAmount(amount: number, name: string): bigint {
  const nano = parseRub(amount);
  if (nano === null) throw invalidField(['body', name], 'must have at most nine decimals');
  return nano;
}

export const createAccount = defineAdminEndpoint(operations.createAccount, (services) => async (context) => {
  const { balance, free_requests, ...request } = context.state.body;
  const { requests_per_minute, user_type, ...settings } = request;
  const change = readAccountSettings(settings, findModelId(services));
  const key = readIdempotencyKey(context);
  const account = {
    once: key === null ? null : { key, request },
    ...change,
    amountNano: readAmount(balance, 'balance'),
    freeRequests: free_requests,
    requestsPerMinute: requests_per_minute ?? services.config.defaultRpm,
    userType: user_type,
  };
  const created = await inDatabaseTurn(services, context, (timedOut) =>
    createInStores(services, trailOf(services, context), account, timedOut),
  );
  if (created.isReplay) context.set('idempotent-replayed', 'true');
  return { ...created.account, api_key: created.apiKey };
});

export const listAccounts = defineAdminEndpoint(operations.listAccounts, (services) => async (context) => {
  const { search, banned } = context.state.query;
  const request = pageOf(context.state.query);
  return await readFromDatabase(services, context, 'list', async () => {
    const found =
      search === undefined
        ? await listAll(services, request, { banned })
        : await searchAccounts(services, search, request, { banned });
    return presentPage(await describePage(services, found), (account) => account);
  });
});

/** The number of the last refill of the page before. */
const refillNumber = /^[1-9]\d{0,14}$/;

export const listAccountRefills = defineAdminEndpoint(
  operations.listAccountRefills,
  (services) => async (context) => {
    const { limit, after = null } = context.state.query;
    if (after !== null && !refillNumber.test(after))
      throw invalidField(['query', 'after'], 'must be the last_id of a page of this list');
    return await readFromDatabase(services, context, 'list', async () => {
      const id = await findAccountId(services, context);
      const { search = null } = context.state.query;
      const request = { limit, search, after: after === null ? null : Number(after) };
      return presentPage(await listRefills(services, id, request), describeRefill);
    });
  },
);

export const listAccountAddresses = defineAdminEndpoint(
  operations.listAccountAddresses,
  (services) => (context) =>
    readFromDatabase(services, context, 'list', async () =>
      listAddresses(services, await findAccountId(services, context)),
    ),
);

export const getAccount = defineAdminEndpoint(
  operations.getAccount,
  (services) => (context) =>
    readFromDatabase(services, context, 'one', () => show(services, context.state.path.account_id)),
);

export const updateAccount = defineAdminEndpoint(
  operations.updateAccount,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const id = await findAccountId(services, context);
      const change = readChange(services, context.state.body);
      if (Object.keys(change).length > 0)
        await updateInStores(services, trailOf(services, context), id, change);
      return await show(services, id);
    }),
);

const findModelId =
  ({ catalog }: Services) =>
  (name: string): string | null =>
    catalog.find(name)?.id ?? null;

/** @throws AppError `validation_failed` */
function readChange(services: Services, body: UpdateAccountRequest): AccountChange {
  const { requests_per_minute, max_queued_jobs, weight, ...settings } = body;
  return {
    ...readAccountSettings(settings, findModelId(services)),
    ...(requests_per_minute !== undefined && { requestsPerMinute: requests_per_minute }),
    ...(max_queued_jobs !== undefined && { maxQueuedJobs: max_queued_jobs }),
    ...(weight !== undefined && { weight }),
  };
}

export const creditAccount = defineAdminEndpoint(operations.creditAccount, (services) => async (context) => {
  const { amount, free_requests: freeRequests, note = null } = context.state.body;
  const key = readIdempotencyKey(context);
  if (key === null)
    throw invalidField(
      ['header', 'Idempotency-Key'],
      'is required: send a text that identifies this credit for ever, such as the number of the invoice',
    );
  const amountNano = readAmount(amount, 'amount');
  if (amountNano === 0n && freeRequests === 0)
    throw invalidField(['body', 'amount'], 'and free_requests are both 0: there is nothing to credit');
  const credit = await inDatabaseTurn(services, context, async () => {
    const id = await findAccountId(services, context);
    return await creditInStores(services, trailOf(services, context), id, {
      amountNano,
      freeRequests,
      note,
      key,
    });
  });
  if (credit.isReplay) context.set('idempotent-replayed', 'true');
  return {
    id: credit.id,
    account: credit.accountId,
    amount: toRubNumber(credit.amountNano),
    free_requests: credit.freeRequests,
    note: credit.note,
    created_at: credit.at.toISOString(),
  };
});

export const banAccount = defineAdminEndpoint(
  operations.banAccount,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const id = await findAccountId(services, context);
      if (context.state.query.dry_run) return await dryRunBan(services, id);
      await banInStores(services, trailOf(services, context), id, context.state.body.reason);
      return await show(services, id);
    }),
);

export const unbanAccount = defineAdminEndpoint(
  operations.unbanAccount,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const id = await findAccountId(services, context);
      await unbanInStores(services, trailOf(services, context), id);
      return await show(services, id);
    }),
);

export const rotateAccountKey = defineAdminEndpoint(
  operations.rotateAccountKey,
  (services) => (context) =>
    inDatabaseTurn(services, context, async (timedOut) => {
      const id = await findAccountId(services, context);
      if (context.state.query.dry_run) return await dryRunRotation(services, id);
      const apiKey = await rotateKey(services, trailOf(services, context), id, timedOut);
      if (apiKey === null) throw noSuchAccount(id);
      return { id, api_key: apiKey };
    }),
);

export const getWebhookSecret = defineAdminEndpoint(
  operations.getWebhookSecret,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const id = await findAccountId(services, context);
      return { id, secret: await showWebhookSecret(services, trailOf(services, context), id) };
    }),
);

export const rotateWebhookSecret = defineAdminEndpoint(
  operations.rotateWebhookSecret,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const id = await findAccountId(services, context);
      if (context.state.query.dry_run) return await dryRunRotateWebhookSecret(services, id);
      return { id, secret: await rotateInStores(services, trailOf(services, context), id) };
    }),
);

export const unlinkAccount = defineAdminEndpoint(
  operations.unlinkAccount,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const link = await services.web.links.findByAccount(await findAccountId(services, context));
      if (link === null) throw notLinked();
      if (context.state.query.dry_run) return await dryRunUnlink(services, link);
      return await unlinkUser(toUserDeps(services, context), trailOf(services, context), link);
    }),
);
