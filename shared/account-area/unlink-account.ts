import type { WebLink } from './web-models.ts';
import type { WebStores } from './web-stores.ts';

/**
 * Unlinks an account from its user. First reserves a new id for the account that the user creates next, because the
 * unlinked account may belong to somebody else by then.
 * @returns false if another request has already unlinked it
 */
export async function unlinkAccount(
  { users, links }: Pick<WebStores, 'users' | 'links'>,
  { userId, _id: linkId, accountId }: WebLink,
): Promise<boolean> {
  await users.replaceReservedAccountId(userId, accountId);
  return (await links.delete(userId, linkId)) !== null;
}
