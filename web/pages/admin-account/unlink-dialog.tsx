import { adminApi, call } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { useMessages } from '../../lib/language.tsx';
import { showToast } from '../../ui/toast.tsx';
import { nameOf, type Account } from './account.ts';
import type en from './messages.en.ts';

/** Takes an account from the list of its user. */
export function UnlinkDialog({
  account,
  onClose,
}: {
  readonly account: Account;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const path = { account_id: account.id };
  return (
    <ConfirmAction
      title={t('unlinkTitle', { name: nameOf(account) })}
      action={t('unlink')}
      run={() => call(adminApi.POST('/v1/admin/accounts/{account_id}/unlink', { params: { path } }))}
      onDone={() => {
        showToast(t('unlinkedNow'));
        onClose();
      }}
      onClose={onClose}
    >
      <p>{t('unlinkText', { email: account.user_email ?? account.user_id ?? '' })}</p>
    </ConfirmAction>
  );
}
