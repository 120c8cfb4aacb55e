import type { WebLink } from './web-models.ts';
import type { WebStores } from './web-stores.ts';

/**
 * Takes an account from its user. First of all the user is given another id for the next first account: the unlinked one
 * may be somebody else's by then.
 * @returns false if another request has unlinked it meanwhile
 */
export async function unlinkAccount(
  { users, links }: Pick<WebStores, 'users' | 'links'>,
  { userId, _id: linkId, accountId }: WebLink,
): Promise<boolean> {
  await users.replaceReservedAccountId(userId, accountId);
  return (await links.delete(userId, linkId)) !== null;
}
