import { useState } from 'preact/hooks';
import { adminApi, call } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readDone, readEffects } from '../../admin/dry-run.ts';
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

const sendBan = (id: string, reason: string, query: { dry_run?: boolean }, signal: AbortSignal | null) =>
  call(
    adminApi.POST('/v1/admin/users/{user_id}/ban', {
      params: { path: { user_id: id }, query },
      body: { reason },
      signal,
    }),
  );

/** A dry run notes no reason, but the call has one. */
const noReason = '-';

function Ban({ user: { id, email }, onClose }: ActionProps) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('banTitle', { email })}
      action={t('ban')}
      needsReason
      preview={(signal) => readEffects(sendBan(id, noReason, { dry_run: true }, signal))}
      describe={({ sessions, accounts }) => (
        <>
          <p>{t('banText')}</p>
          <p>
            {t('sessionsEnd', { count: sessions })} {t('keysStay', { count: accounts })}
          </p>
        </>
      )}
      run={(reason) => readDone(sendBan(id, reason, {}, null))}
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
      run={() =>
        call(adminApi.POST('/v1/admin/users/{user_id}/unban', { params: { path: { user_id: id } } }))
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

const sendEnd = (id: string, query: { dry_run?: boolean }, signal: AbortSignal | null) =>
  call(
    adminApi.POST('/v1/admin/users/{user_id}/revoke-sessions', {
      params: { path: { user_id: id }, query },
      signal,
    }),
  );

function EndSessions({ user: { id, email }, onClose }: ActionProps) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('endTitle', { email })}
      action={t('endSessions')}
      preview={(signal) => readEffects(sendEnd(id, { dry_run: true }, signal))}
      describe={({ sessions }) => (
        <p>
          {t('sessionsEnd', { count: sessions })} {t('endText')}
        </p>
      )}
      run={() => readDone(sendEnd(id, {}, null))}
      onDone={({ sessions_ended: count }) => {
        onClose();
        showToast(t('sessionsEnded', { count }));
      }}
      onClose={onClose}
    />
  );
}
