import { AppError } from '../../../shared/contract/errors.ts';
import type { AccountPath } from '../../../shared/contract/web-accounts.ts';
import { noSuchLinkText } from '../../../shared/contract/web-errors.ts';
import type { HotAccount } from '../../../shared/billing/hot-account-store.ts';
import { mapBounded } from '../../../shared/runtime/map-bounded.ts';
import { waitForLookUp } from '../../../shared/runtime/within.ts';
import type { WebLink } from '../../../shared/web/web-models.ts';
import { currentSession } from '../../middleware/authenticate-session.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import type { ShownAccount } from '../../present/web.ts';
import type { Services } from '../../services.ts';

/** The link that the address names. @throws AppError `not_found`, also for one of another user */
export async function findLink(services: Services, context: ApiContext): Promise<WebLink> {
  const { account_id: linkId } = context.state.path as AccountPath;
  const { userId } = await currentSession(services, context);
  const link = await services.web.links.find(userId, linkId);
  if (link === null) throw noSuchLink(linkId);
  return link;
}

export const noSuchLink = (linkId: number): AppError => new AppError('not_found', noSuchLinkText(linkId));

export const accountGone = (): AppError =>
  new AppError('not_found', {
    message: 'This account does not exist any more.',
    messageRu: 'Этого аккаунта больше нет.',
  });

/**
 * The account behind a link, in Redis from here on.
 * @returns null where there is no such account any more
 * @throws AppError `service_unavailable`
 */
async function loadAccount(
  { hotAccounts, accountWaitMs }: Services,
  accountId: string,
): Promise<HotAccount | null> {
  try {
    return await waitForLookUp(accountWaitMs, 'opening an account', hotAccounts.get(accountId));
  } catch (error) {
    // To a caller with a session, a 401 would say that the session has ended.
    if (error instanceof AppError && error.code === 'invalid_api_key') return null;
    throw error;
  }
}

/**
 * The account of a link, to be worked with.
 * @throws AppError `account_banned`, `not_found` where it does not exist any more, `service_unavailable`
 */
export async function openLink(services: Services, { accountId }: WebLink): Promise<HotAccount> {
  const account = await loadAccount(services, accountId);
  if (account === null) throw accountGone();
  if (account.banned) throw new AppError('account_banned');
  return account;
}

/** The account that the address names. @throws AppError as `findLink` and `openLink` do */
export async function openLinkedAccount(services: Services, context: ApiContext): Promise<HotAccount> {
  return await openLink(services, await findLink(services, context));
}

/** Each may have to be loaded from MongoDB: a list of a hundred must not take all connections of the process. */
const openedAtOnce = 8;

/**
 * What is shown of links of one user, in their order. A link whose account does not exist any more is left out: one that
 * an operator has deleted by hand must not hide the others.
 * @param primary the user's oldest link
 */
export async function describeLinks(
  services: Services,
  links: readonly WebLink[],
  primary: WebLink | null | undefined,
): Promise<ShownAccount[]> {
  const { accounts, hotAccounts, log } = services;
  if (links.length === 0) return [];
  const documents = await accounts.findByIds(links.map(({ accountId }) => accountId));
  const keys = new Map(documents.map((document) => [document._id, document]));
  const shown = await mapBounded(links, openedAtOnce, async (link) => {
    const account = await loadAccount(services, link.accountId);
    if (account === null) {
      log.warn({ userId: link.userId, accountId: link.accountId }, 'linked account does not exist');
      return [];
    }
    const recent = await hotAccounts.readRecentUse(link.accountId);
    const key = keys.get(link.accountId) ?? null;
    return [{ link, isPrimary: link._id === primary?._id, account, recent, key }];
  });
  return shown.flat();
}
