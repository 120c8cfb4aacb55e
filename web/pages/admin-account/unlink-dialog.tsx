import { UnlinkAccount } from '../../admin/accounts/unlink-account.tsx';
import { nameOf, type Account } from './account.ts';

/** Takes the account from the list of its user. */
export const UnlinkDialog = ({
  account,
  onClose,
}: {
  readonly account: Account;
  readonly onClose: () => void;
}) => <UnlinkAccount id={account.id} name={nameOf(account)} onClose={onClose} />;
