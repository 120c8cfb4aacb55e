import { showToast } from '../../ui/toast.tsx';
import { adminApi, call } from '../api.ts';
import { ConfirmAction } from '../confirm-action.tsx';
import { readDone, readEffects, toCall, type CallPurpose } from '../dry-run.ts';
import { useConsole } from '../texts.ts';

function unlink(id: string, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  const params = { path: { account_id: id }, query };
  return call(adminApi.POST('/v1/admin/accounts/{account_id}/unlink', { params, signal }));
}

/** Takes an account from the list of its user. */
export function UnlinkAccount({
  id,
  name,
  onClose,
}: {
  readonly id: string;
  readonly name: string;
  readonly onClose: () => void;
}) {
  const t = useConsole();
  return (
    <ConfirmAction
      title={t('unlinkTitle', { name })}
      action={t('unlink')}
      preview={(signal) => readEffects(unlink(id, signal))}
      describe={({ email, user_id: userId, other_accounts: others }) => (
        <>
          <p>{t('unlinkText', { email: email ?? userId })}</p>
          {others > 0 && <p>{t('unlinkOthers', { count: others })}</p>}
        </>
      )}
      run={(given) => readDone(unlink(id, given))}
      onDone={() => {
        showToast(t('unlinkedNow', { name }));
        onClose();
      }}
      onClose={onClose}
    />
  );
}
