// decision 0099
import { AppError } from '../../../shared/contract/errors.ts';
import { accountHeader } from '../../../shared/contract/operation.ts';
import { maxLinkId } from '../../../shared/account-area/web-models.ts';
import { noSessionCookie, noSuchLink, sessionEnded } from '../../account-area/session-errors.ts';
import type { FoundAccess, SessionAccess } from '../../account-area/session-accounts.ts';
import type { Services } from '../../services.ts';
import type { ApiContext } from './context.ts';
import type { AccountHolder, SessionHolder } from './holder.ts';
import { waitForLookUp } from '../../../shared/platform/storage/wait-for-look-up.ts';
import { inDatabaseTurn } from './in-database-turn.ts';
import { readCookie } from './session-cookies.ts';

/** What reading the cookies of a session takes. */
export interface CookieServices {
  readonly config: Pick<Services['config'], 'publicUrl'>;
  readonly web: { readonly sessions: Pick<Services['web']['sessions'], 'isIssued'> };
}

type LookUpServices = Pick<Services, 'sessionAccounts' | 'databaseTurns' | 'databaseWaitMs' | 'log'>;

/** Whether the call names an account for a session to act for. An Authorization header is used instead. */
export const usesSession = ({ req: { headers } }: ApiContext): boolean =>
  headers.authorization === undefined && headers[accountHeader.toLowerCase()] !== undefined;

/**
 * Returns the cookie's token. Looks nothing up.
 * @throws AppError `unauthenticated` if there is none that was issued here
 */
export function readSessionToken({ web, config }: CookieServices, context: ApiContext): string {
  const token = readCookie(context, config, 'session');
  if (token === null) throw noSessionCookie(readCookie(context, config, 'refresh') !== null);
  if (!web.sessions.isIssued('access', token)) throw sessionEnded();
  return token;
}

/** Returns the id in `X-Api-Account`; null if it cannot be one. */
export function readLinkId(context: ApiContext): number | null {
  const text = context.get(accountHeader);
  if (!/^[1-9]\d{0,9}$/.test(text)) return null;
  const id = Number(text);
  return id > maxLinkId ? null : id;
}

/** Returns what the call's headers say, without a look-up; null unless it names an account and has an issued session. */
export function peekSessionAccess(
  { web, config }: CookieServices,
  context: ApiContext,
): SessionAccess | null {
  if (!usesSession(context)) return null;
  const token = readCookie(context, config, 'session');
  const linkId = readLinkId(context);
  return token !== null && linkId !== null && web.sessions.isIssued('access', token)
    ? { token, linkId }
    : null;
}

/** Looks up a session and its user's account, in a database turn of the caller. @throws AppError like `inDatabaseTurn` */
export async function findAccess(
  services: LookUpServices,
  context: ApiContext,
  access: SessionAccess,
): Promise<FoundAccess> {
  const { sessionAccounts } = services;
  return (
    sessionAccounts.findRecent(access) ??
    (await inDatabaseTurn(services, context, () => sessionAccounts.find(access)))
  );
}

/** @returns null if the user has no such account */
export const toSessionHolder = (access: SessionAccess, { accountId }: FoundAccess): SessionHolder | null =>
  accountId === null ? null : { accountId, keyHash: null, access };

/** The error of a header that cannot be the id of an account. */
export const malformedAccount = (): AppError =>
  new AppError('not_found', {
    message: `${accountHeader} is not the id of an account, such as 1742. GET /v1/web/api-accounts lists your accounts.`,
    messageRu: `${accountHeader} не содержит id аккаунта, например 1742. Список ваших аккаунтов: GET /v1/web/api-accounts.`,
  });

/**
 * Checks that the caller's session may still act for the account: it may have ended, or the account may have been
 * unlinked, while a body arrived or the request waited. The scripts of admission check keys themselves.
 * @throws AppError `unauthenticated`, `not_found`, `service_unavailable`
 */
export async function confirmHolder(
  { sessionAccounts, databaseWaitMs }: Pick<Services, 'sessionAccounts' | 'databaseWaitMs'>,
  holder: AccountHolder,
): Promise<void> {
  if (holder.keyHash !== null) return;
  const { access, accountId } = holder;
  // Needs no database turn: the caller is known, may be in a turn, and has at most one look-up in progress.
  const found =
    sessionAccounts.findRecent(access) ??
    (await waitForLookUp(databaseWaitMs, 'session lookup', sessionAccounts.find(access)));
  if (found.session === null) throw sessionEnded();
  // Somebody else may have linked the account, or its user another account with this id.
  if (found.accountId !== accountId) throw noSuchLink(access.linkId);
}
