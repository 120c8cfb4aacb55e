import { showToast } from '../../ui/toast.tsx';
import { adminApi, call } from '../api.ts';
import { ConfirmAction } from '../confirm-action.tsx';
import { readDone, readEffects } from '../dry-run.ts';
import { useConsole } from '../texts.ts';

const unlink = (id: string, signal?: AbortSignal) =>
  call(
    adminApi.POST('/v1/admin/accounts/{account_id}/unlink', {
      params: { path: { account_id: id }, query: { dry_run: signal !== undefined } },
      ...(signal === undefined ? {} : { signal }),
    }),
  );

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
      run={() => readDone(unlink(id))}
      onDone={() => {
        showToast(t('unlinkedNow', { name }));
        onClose();
      }}
      onClose={onClose}
    />
  );
}
