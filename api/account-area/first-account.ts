import { creditClaim } from '../../shared/accounts/credit-claim.ts';
import { replaceKey } from '../../shared/accounts/replace-key.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { GrantAmounts, SignupDecision, SignupGrant } from '../../shared/accounts/signup-grant-store.ts';
import type { WebLink, WebUser } from '../../shared/account-area/web-models.ts';
import type { WebStores } from '../../shared/account-area/web-stores.ts';
import type { Services } from '../services.ts';
import type { SignupGrants } from './signup-grants.ts';

export type FirstAccountDeps = Pick<
  Services,
  'accounts' | 'apiKeys' | 'codes' | 'config' | 'hotAccounts' | 'log' | 'redis'
> & {
  readonly web: Pick<WebStores, 'links' | 'users'> & { readonly grants: Pick<SignupGrants, 'decide'> };
};

export interface NewFirstAccount {
  readonly label: string;
  /** The network of the caller, to which a grant counts. */
  readonly network: string;
}

export interface FirstAccount {
  readonly link: WebLink;
  readonly apiKey: string;
  readonly grant: SignupGrant;
}

/**
 * Creates the first account of a user who has none, including the signup grant. The account's id was reserved for the
 * user beforehand, so that parallel requests and retries after a crash work on the same account. The link is unique, so
 * only one request can create it. That request succeeds and returns a key. `SignupGrants` decides whether the user gets
 * the grant. It is a redemption claim like that of a refill code, and a user can only ever have one. `finishClaims`
 * credits grants that a crash left uncredited.
 * @throws AppError `account_exists`, `service_unavailable`
 */
export async function createFirstAccount(
  dependencies: FirstAccountDeps,
  user: WebUser,
  { label, network }: NewFirstAccount,
): Promise<FirstAccount> {
  const { accounts, config, hotAccounts, log, web } = dependencies;
  const { _id: userId, reservedAccountId: accountId } = user;
  const settings = { userType: 'default', requestsPerMinute: config.defaultRpm };
  const firstKey = await accounts.createWithId(accountId, settings);
  const decision = await web.grants.decide(user, network);
  const link = await takeLink(dependencies, { userId, accountId, label });
  // If there is no first key, another request created the account. It did not get the link, so it returns no key.
  // Generate a new key here.
  const apiKey = firstKey ?? (await replaceKey(dependencies, accountId));
  if (apiKey === null) throw new Error(`Account ${accountId} disappeared while it was being linked.`);
  // The key must be returned. Later failures are repaired by `finishClaims` and when the account is used.
  const claim = decision?.accountId === accountId ? decision.claim : null;
  const credited = claim === null ? hotAccounts.load(accountId) : creditClaim(dependencies, claim);
  await credited.catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error;
    log.warn({ accountId, err: error }, 'crediting of a first account postponed');
  });
  const grant = toGrant(decision, accountId);
  if (grant.denialReason !== null)
    log.info({ userId, accountId, reason: grant.denialReason }, 'no sign-up grant');
  return { link, apiKey, grant };
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

const noGrant: GrantAmounts = { balanceNano: 0n, freeRequests: 0 };

function toGrant(decision: SignupDecision | null, accountId: string): SignupGrant {
  if (decision === null) return { ...noGrant, denialReason: 'not_offered' };
  const { denialReason, balanceNano, freeRequests } = decision;
  if (denialReason !== null) return { ...noGrant, denialReason };
  if (decision.accountId !== accountId) return { ...noGrant, denialReason: 'already_granted' };
  return { balanceNano, freeRequests, denialReason: null };
}

const accountExists = (): AppError => new AppError('account_exists');
