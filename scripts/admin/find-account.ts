import { hashSecret, isApiKey } from '../../shared/accounts/credentials.ts';
import { CommandError, type AdminContext } from './command.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';

/** The `id` of a linked account in the account area, which users give to support. Account ids are UUIDs. */
const linkNumber = /^\d{1,10}$/;

/** @throws CommandError if no account has that id, key or link number */
export async function findAccountId(
  { accounts, web, positionals }: AdminContext,
  given = positionals[0]!,
): Promise<string> {
  if (linkNumber.test(given)) {
    const link = await web.links.findById(Number(given));
    if (link === null) throw noSuchLink(given);
    return link.accountId;
  }
  const id = isApiKey(given) ? await accounts.findIdByKeyHash(hashSecret(given)) : given;
  if (id === null || (await accounts.findById(id)) === null) throw noSuchAccount(given);
  return id;
}

/** The message does not repeat an API key: it may be a valid key with a typo, and command output is often stored. */
export const noSuchAccount = (given: string): CommandError =>
  new CommandError(
    given.startsWith('mg-')
      ? 'No account has this API key. Check it, or whether it was replaced: "audit list --resource account" shows the parts of old and new keys, and "account list" all accounts.'
      : `No account ${quote(given)}. Give an id, an API key, or the number that the account area shows; "account list" lists all accounts.`,
  );

const noSuchLink = (given: string): CommandError =>
  new CommandError(
    `No account is linked under the number ${given}. An unlinked account has no number: give its id or API key; "account list" lists all accounts.`,
  );
