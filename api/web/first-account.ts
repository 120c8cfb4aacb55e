import { creditClaim } from '../../shared/refills/credit-claim.ts';
import { replaceKey } from '../../shared/account-changes/replace-key.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { RedemptionClaim } from '../../shared/refills/refill-code-store.ts';
import type { WebLink, WebUser } from '../../shared/web/web-models.ts';
import type { WebStores } from '../../shared/web/web-stores.ts';
import type { Services } from '../services.ts';

export type FirstAccountDeps = Pick<
  Services,
  'accounts' | 'apiKeys' | 'codes' | 'config' | 'hotAccounts' | 'log' | 'redis'
> & { readonly web: Pick<WebStores, 'links' | 'users'> };

/**
 * Creates the first account of a user who has none, including the signup grant. The account's id was reserved for the
 * user beforehand, so that parallel requests and retries after a crash work on the same account. The link is unique, so
 * only one request can create it. That request succeeds and returns a key. The grant is a redemption claim like that of
 * a refill code, and a user can only ever have one. `finishClaims` credits grants that a crash left uncredited.
 * @throws AppError `account_exists`, `service_unavailable`
 */
export async function createFirstAccount(
  dependencies: FirstAccountDeps,
  user: WebUser,
  label: string,
): Promise<{ link: WebLink; apiKey: string }> {
  const { accounts, config, hotAccounts } = dependencies;
  const { _id: userId, reservedAccountId: accountId } = user;
  const settings = { userType: 'default', requestsPerMinute: config.defaultRpm };
  const firstKey = await accounts.createWithId(accountId, settings);
  const grant = await claimGrant(dependencies, userId, accountId);
  const link = await takeLink(dependencies, { userId, accountId, label });
  // If there is no first key, another request created the account. It did not get the link, so it returns no key.
  // Generate a new key here.
  const apiKey = firstKey ?? (await replaceKey(dependencies, accountId));
  if (apiKey === null) throw new Error(`Account ${accountId} has disappeared while it was linked.`);
  // The key must be returned. Later failures are repaired by `finishClaims` and when the account is used.
  const credited = grant === null ? hotAccounts.load(accountId) : creditClaim(dependencies, grant);
  await credited.catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error;
    dependencies.log.warn({ accountId, err: error }, 'crediting of a first account postponed');
  });
  return { link, apiKey };
}

async function claimGrant(
  { codes, config }: FirstAccountDeps,
  userId: string,
  accountId: string,
): Promise<RedemptionClaim | null> {
  const { balanceNano, freeRequests } = config.signup;
  if (balanceNano === 0n && freeRequests === 0) return null;
  return await codes.claimSignupGrant(userId, accountId, { balanceNano, freeRequests });
}

async function takeLink(
  { web }: FirstAccountDeps,
  { userId, accountId, label }: Pick<WebLink, 'userId' | 'accountId' | 'label'>,
): Promise<WebLink> {
  const link = await web.links.create({ userId, accountId, label }).catch((error: unknown) => {
    throw error instanceof AppError && error.code === 'already_linked' ? accountExists() : error;
  });
  const isFirst = (await web.links.findOldest(userId))?._id === link._id;
  if (isFirst && (await web.users.replaceReservedAccountId(userId, accountId))) return link;
  // The user has linked another account. Or this account was linked and unlinked since this request read its id, and
  // may belong to another user by now.
  await web.links.delete(userId, link._id);
  throw accountExists();
}

const accountExists = (): AppError => new AppError('account_exists');
