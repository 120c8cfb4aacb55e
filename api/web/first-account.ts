import { creditClaim } from '../../shared/accounts/credit-claim.ts';
import { replaceKey } from '../../shared/accounts/replace-key.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { Claim } from '../../shared/accounts/refill-code-store.ts';
import type { WebLink, WebUser } from '../../shared/web/web-models.ts';
import type { WebStores } from '../../shared/web/web-stores.ts';
import type { Services } from '../services.ts';

export type FirstAccountDependencies = Pick<
  Services,
  'accounts' | 'apiKeys' | 'codes' | 'config' | 'hotAccounts' | 'log' | 'redis'
> & { readonly web: Pick<WebStores, 'links' | 'users'> };

/**
 * Makes the first account of a user who has none, with the grant for new users. Its id was reserved for the user
 * beforehand, so that parallel requests and those after a crash work on the same account. The unique link decides which
 * of them succeeds, and only that one hands out a key. The grant is a claim like that of a refill code, of which a user
 * has one for ever: what a crash leaves of it is credited by `finishClaims`.
 * @throws AppError `account_exists`, `service_unavailable`
 */
export async function createFirstAccount(
  dependencies: FirstAccountDependencies,
  user: WebUser,
  label: string,
): Promise<{ link: WebLink; apiKey: string }> {
  const { accounts, config, hotAccounts } = dependencies;
  const { _id: userId, reservedAccountId: accountId } = user;
  const settings = { userType: 'default', requestsPerMinute: config.defaultRpm };
  const firstKey = await accounts.createWithId(accountId, settings);
  const grant = await claimGrant(dependencies, userId, accountId);
  const link = await takeLink(dependencies, { userId, accountId, label });
  // Another request made the account and did not get the link, so it hands out no key.
  const apiKey = firstKey ?? (await replaceKey(dependencies, accountId));
  if (apiKey === null) throw new Error(`Account ${accountId} has disappeared while it was linked.`);
  // The key must be handed out: what fails from here on is made good by `finishClaims`, and when the account is used.
  const credited = grant === null ? hotAccounts.load(accountId) : creditClaim(dependencies, grant);
  await credited.catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error;
    dependencies.log.warn({ accountId, err: error }, 'a first account is credited later');
  });
  return { link, apiKey };
}

async function claimGrant(
  { codes, config }: FirstAccountDependencies,
  userId: string,
  accountId: string,
): Promise<Claim | null> {
  const { balanceNano, freeRequests } = config.signup;
  if (balanceNano === 0n && freeRequests === 0) return null;
  return await codes.claimSignupGrant(userId, accountId, { balanceNano, freeRequests });
}

async function takeLink(
  { web }: FirstAccountDependencies,
  { userId, accountId, label }: Pick<WebLink, 'userId' | 'accountId' | 'label'>,
): Promise<WebLink> {
  const link = await web.links.create({ userId, accountId, label }).catch((error: unknown) => {
    throw error instanceof AppError && error.code === 'already_linked' ? accountExists() : error;
  });
  const isFirst = (await web.links.findOldest(userId))?._id === link._id;
  if (isFirst && (await web.users.replaceReservedAccountId(userId, accountId))) return link;
  // The user has linked another account meanwhile. Or this one was linked and unlinked again since this request read its
  // id: it may be somebody else's by now.
  await web.links.delete(userId, link._id);
  throw accountExists();
}

const accountExists = (): AppError => new AppError('account_exists');
