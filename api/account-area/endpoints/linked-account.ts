import type { HotAccount } from '../../../shared/accounts/hot-account-store.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import type { AccountPath } from '../../contract/web-accounts.ts';
import { waitForLookUp } from '../../../shared/platform/storage/wait-for-look-up.ts';
import { mapBounded } from '../../../shared/platform/runtime/map-bounded.ts';
import type { WebLink } from '../../../shared/account-area/web-models.ts';
import { accountGone, noSuchLink } from '../session-errors.ts';
import { currentSession } from '../steps/authenticate-session.ts';
import type { AccountView } from './present-user.ts';
import type { ApiContext } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';

/**
 * Context of a request for a linked account. The `account_id` in its path is the id of the link, not of the account.
 */
export type LinkContext = ApiContext & { readonly state: { readonly path: AccountPath } };

/** Finds the link in the path. @throws AppError `not_found`, even if another user has such a link */
export async function findLink(services: Services, context: LinkContext): Promise<WebLink> {
  const { account_id: linkId } = context.state.path;
  const { userId } = await currentSession(services, context);
  const link = await services.web.links.find(userId, linkId);
  if (link === null) throw noSuchLink(linkId);
  return link;
}

/**
 * Loads the account behind a link into Redis.
 * @returns null if the account no longer exists
 * @throws AppError `service_unavailable`
 */
async function loadAccount(
  { hotAccounts, accountWaitMs }: Services,
  accountId: string,
): Promise<HotAccount | null> {
  try {
    return await waitForLookUp(accountWaitMs, 'loading an account', hotAccounts.get(accountId));
  } catch (error) {
    // To a caller with a session, a 401 would mean that the session has ended.
    if (error instanceof AppError && error.code === 'invalid_api_key') return null;
    throw error;
  }
}

/**
 * Loads the account of a link and checks that it can be used.
 * @throws AppError `account_banned`, `not_found` if it no longer exists, `service_unavailable`
 */
export async function openLink(services: Services, { accountId }: WebLink): Promise<HotAccount> {
  const account = await loadAccount(services, accountId);
  if (account === null) throw accountGone();
  if (account.banned) throw new AppError('account_banned');
  return account;
}

/** Like `openLink`, for the link in the path. @throws AppError like `findLink` and `openLink` */
export async function openLinkedAccount(services: Services, context: LinkContext): Promise<HotAccount> {
  return await openLink(services, await findLink(services, context));
}

/**
 * Accounts may have to be loaded from MongoDB, and a list of a hundred accounts must not use all MongoDB connections of
 * the process.
 */
const maxConcurrentLoads = 8;

/**
 * Describes links of one user, in their order. Links to accounts that no longer exist are skipped: an account that an
 * operator deleted by hand must not hide the others.
 * @param primary the user's oldest link
 */
export async function describeLinks(
  services: Services,
  links: readonly WebLink[],
  primary: WebLink | null | undefined,
): Promise<AccountView[]> {
  const { accounts, hotAccounts, log } = services;
  if (links.length === 0) return [];
  const accountDocuments = await accounts.findByIds(links.map(({ accountId }) => accountId));
  const documentsById = new Map(accountDocuments.map((document) => [document._id, document]));
  const views = await mapBounded(links, maxConcurrentLoads, async (link) => {
    const account = await loadAccount(services, link.accountId);
    if (account === null) {
      log.warn({ userId: link.userId, accountId: link.accountId }, 'linked account does not exist');
      return [];
    }
    const recent = await hotAccounts.readRecentUse(link.accountId);
    const document = documentsById.get(link.accountId) ?? null;
    return [{ link, isPrimary: link._id === primary?._id, account, recent, document }];
  });
  return views.flat();
}
