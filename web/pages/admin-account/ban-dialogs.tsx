import { adminApi, call, type Schema } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readEffects } from '../../admin/dry-run.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { showToast } from '../../ui/toast.tsx';
import { nameOf, type Account } from './account.ts';
import type en from './messages.en.ts';

interface AccountDialogProps {
  readonly account: Account;
  readonly onClose: () => void;
}

type BanEffects = Schema<'DryRunOfBan'>['effects'];

export function BanDialog({ account, onClose }: AccountDialogProps) {
  const t = useMessages<typeof en>();
  const path = { account_id: account.id };
  return (
    <ConfirmAction
      title={t('banTitle', { name: nameOf(account) })}
      action={t('ban')}
      needsReason
      preview={(signal) =>
        readEffects(
          call(
            adminApi.POST('/v1/admin/accounts/{account_id}/ban', {
              params: { path, query: { dry_run: true } },
              // What a reason would be is not known yet.
              body: { reason: 'dry run' },
              signal,
            }),
          ),
        )
      }
      describe={(effects) => <BanEffect effects={effects} />}
      run={({ reason = '' }) =>
        call(adminApi.POST('/v1/admin/accounts/{account_id}/ban', { params: { path }, body: { reason } }))
      }
      onDone={() => {
        showToast(t('bannedNow'));
        onClose();
      }}
      onClose={onClose}
    />
  );
}

function BanEffect({ effects }: { readonly effects: BanEffects }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { requests, jobs_waiting: waiting, jobs_running: running, batches, lines } = effects;
  const parts = [
    ...(requests > 0 ? [t('endsRequests', { count: requests })] : []),
    ...(waiting + running > 0 ? [t('cancelsJobs', { count: waiting + running })] : []),
    ...(batches > 0 ? [t('cancelsBatches', { count: batches, lines: format.number(lines) })] : []),
  ];
  return (
    <>
      <p>{t('banText')}</p>
      {parts.length === 0 ? (
        <p>{t('nothingRuns')}</p>
      ) : (
        <ul class="admin-account-effects">
          {parts.map((part) => (
            <li key={part}>{part}</li>
          ))}
        </ul>
      )}
      <p>
        {t('balanceStays', { balance: format.money(effects.balance) })}
        {effects.reserved > 0 && ` ${t('reservedNow', { amount: format.money(effects.reserved) })}`}
      </p>
    </>
  );
}

export function UnbanDialog({ account, onClose }: AccountDialogProps) {
  const t = useMessages<typeof en>();
  const path = { account_id: account.id };
  return (
    <ConfirmAction
      title={t('unbanTitle', { name: nameOf(account) })}
      action={t('unban')}
      kind="primary"
      run={(query) =>
        call(adminApi.POST('/v1/admin/accounts/{account_id}/unban', { params: { path, query } }))
      }
      onDone={() => {
        showToast(t('unbannedNow'));
        onClose();
      }}
      onClose={onClose}
    >
      <p>{t('unbanText', { reason: account.ban_reason ?? t('noReason') })}</p>
    </ConfirmAction>
  );
}
