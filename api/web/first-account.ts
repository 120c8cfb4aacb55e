import { creditClaim } from '../../shared/accounts/credit-claim.ts';
import { replaceKey } from '../../shared/accounts/replace-key.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { WebLink, WebUser } from '../../shared/web/web-models.ts';
import type { Services } from '../services.ts';

/** A request that makes an account takes a second or two. One that takes longer has died. */
const makingMs = 30_000;

/**
 * Makes the first account of a user, with what new users are given. Its id was reserved for the user beforehand, so
 * that of several who try at once one succeeds, and one who tries again after a crash goes on with the same account. The
 * grant is a claim like that of a refill code, of which a user has one for ever: what a crash leaves of it is credited by
 * `finishClaims`.
 * @throws AppError `account_exists`, `service_unavailable`
 */
export async function createFirstAccount(
  services: Services,
  user: WebUser,
  label: string,
): Promise<{ link: WebLink; apiKey: string }> {
  const { web, codes, config, hotAccounts } = services;
  const { _id: userId, reservedAccountId: accountId } = user;
  if ((await web.links.findOldest(userId)) !== null) throw accountExists();
  const apiKey = await makeAccount(services, accountId);
  const { balanceNano, freeRequests } = config.signup;
  const grant =
    balanceNano === 0n && freeRequests === 0
      ? null
      : await codes.claimSignupGrant(userId, accountId, { balanceNano, freeRequests });
  const link = await web.links.create({ userId, accountId, label }).catch((error: unknown) => {
    throw error instanceof AppError && error.code === 'already_linked' ? accountExists() : error;
  });
  await web.users.replaceReservedAccountId(userId, accountId);
  if (grant !== null) await creditClaim(services, grant);
  else await hotAccounts.load(accountId);
  return { link, apiKey };
}

async function makeAccount(services: Services, id: string): Promise<string> {
  const { accounts, config } = services;
  const made = await accounts.createWithId(id, {
    userType: 'default',
    requestsPerMinute: config.defaultRpm,
  });
  if (made !== null) return made;
  const found = await accounts.findById(id);
  if (found === null || Date.now() - found.createdAt.getTime() < makingMs) throw accountExists();
  // Made by a request that died before it could link it: nobody knows its key.
  const apiKey = await replaceKey(services, id, { expectedKeyHash: found.keyHash });
  if (apiKey === null) throw accountExists();
  return apiKey;
}

const accountExists = (): AppError => new AppError('account_exists');
