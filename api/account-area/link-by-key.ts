import { hashSecret, isApiKey } from '../../shared/accounts/credentials.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { unknownKeyText } from '../../shared/contract/web-errors.ts';
import type { NewLink } from '../../shared/account-area/link-store.ts';
import type { WebLink } from '../../shared/account-area/web-models.ts';
import type { WebStores } from '../../shared/account-area/web-stores.ts';
import type { Services } from '../services.ts';

type LinkDeps = Pick<Services, 'accounts'> & { readonly web: Pick<WebStores, 'links'> };

/**
 * Links the account. The key may have been replaced since it was looked up, perhaps to lock out this very caller. So it
 * is looked up again afterwards, and the link is removed unless the key is still valid.
 */
export async function linkByKey(
  dependencies: LinkDeps,
  { userId, accountId, label }: NewLink,
  apiKey: string,
): Promise<WebLink> {
  const { links } = dependencies.web;
  const link = await links.create({ userId, accountId, label });
  try {
    if ((await findByKey(dependencies, apiKey)) !== accountId) throw unknownKeyToLink();
    return link;
  } catch (error) {
    await links.delete(userId, link._id);
    throw error;
  }
}

/**
 * Finds the account of a key in MongoDB. A replaced key is not found there.
 * @param pasted may have surrounding spaces
 */
export async function findByKey(
  { accounts }: Pick<Services, 'accounts'>,
  pasted: string,
): Promise<string | null> {
  const apiKey = pasted.trim();
  return isApiKey(apiKey) ? await accounts.findIdByKeyHash(hashSecret(apiKey)) : null;
}

export function unknownKeyToLink(): AppError {
  const { message, messageRu, param } = unknownKeyText;
  const issue = { loc: ['body', param], msg: message, type: 'invalid_api_key' };
  return new AppError('invalid_api_key', { message, messageRu, issues: [issue] });
}
