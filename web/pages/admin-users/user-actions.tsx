import { useState } from 'preact/hooks';
import { adminApi, call } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readDone, readEffects, toCall, type CallPurpose } from '../../admin/dry-run.ts';
import { useMay } from '../../admin/session.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { showToast } from '../../ui/toast.tsx';
import type en from './messages.en.ts';
import type { User } from './user-dialog.tsx';

interface ActionProps {
  readonly user: User;
  readonly onClose: () => void;
}

/** What operators can do to a user. */
export function UserActions({ user }: { readonly user: User }) {
  const t = useMessages<typeof en>();
  const may = useMay('all');
  const [action, setAction] = useState<'ban' | 'unban' | 'end' | null>(null);
  if (!may) return null;
  const close = (): void => setAction(null);
  return (
    <div class="admin-users-actions">
      {user.banned ? (
        <Button onClick={() => setAction('unban')}>{t('unban')}</Button>
      ) : (
        <Button onClick={() => setAction('ban')}>{t('ban')}</Button>
      )}
      {user.sessions.length > 0 && <Button onClick={() => setAction('end')}>{t('endSessions')}</Button>}
      {action === 'ban' && <Ban user={user} onClose={close} />}
      {action === 'unban' && <Unban user={user} onClose={close} />}
      {action === 'end' && <EndSessions user={user} onClose={close} />}
    </div>
  );
}

/** A dry run notes no reason, but the call has one. */
const noReason = '-';

function sendBan(id: string, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  const { reason = noReason, ...asked } = query;
  const params = { path: { user_id: id }, query: asked };
  return call(adminApi.POST('/v1/admin/users/{user_id}/ban', { params, body: { reason }, signal }));
}

function Ban({ user: { id, email }, onClose }: ActionProps) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('banTitle', { email })}
      action={t('ban')}
      needsReason
      preview={(signal) => readEffects(sendBan(id, signal))}
      describe={({ sessions, accounts }) => (
        <>
          <p>{t('banText')}</p>
          <p>
            {t('sessionsEnd', { count: sessions })} {t('keysStay', { count: accounts })}
          </p>
        </>
      )}
      run={(given) => readDone(sendBan(id, given))}
      onDone={({ sessions_ended: count }) => {
        onClose();
        showToast(`${t('bannedNow', { email })} ${t('sessionsEnded', { count })}`);
      }}
      onClose={onClose}
    />
  );
}

function Unban({ user: { id, email, ban_reason: reason }, onClose }: ActionProps) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('unbanTitle', { email })}
      action={t('unban')}
      kind="primary"
      run={(query) =>
        call(adminApi.POST('/v1/admin/users/{user_id}/unban', { params: { path: { user_id: id }, query } }))
      }
      onDone={() => {
        onClose();
        showToast(t('unbannedNow', { email }));
      }}
      onClose={onClose}
    >
      <p>{reason === null ? t('unbanText') : t('unbanTextReason', { reason })}</p>
    </ConfirmAction>
  );
}

function sendEnd(id: string, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  const params = { path: { user_id: id }, query };
  return call(adminApi.POST('/v1/admin/users/{user_id}/revoke-sessions', { params, signal }));
}

function EndSessions({ user: { id, email }, onClose }: ActionProps) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('endTitle', { email })}
      action={t('endSessions')}
      preview={(signal) => readEffects(sendEnd(id, signal))}
      describe={({ sessions }) => (
        <p>
          {t('sessionsEnd', { count: sessions })} {t('endText')}
        </p>
      )}
      run={(given) => readDone(sendEnd(id, given))}
      onDone={({ sessions_ended: count }) => {
        onClose();
        showToast(t('sessionsEnded', { count }));
      }}
      onClose={onClose}
    />
  );
}
