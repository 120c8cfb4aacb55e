import { useState } from 'preact/hooks';
import { ShownKeyDialog } from '../../admin/accounts/shown-key-dialog.tsx';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readDone, readEffects } from '../../admin/dry-run.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { nameOf, type Account } from './account.ts';
import type en from './messages.en.ts';

/** Replaces the key of an account, such as one that was lost or stolen, and shows the new one. */
export function RotateDialog({
  account,
  onClose,
}: {
  readonly account: Account;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const [apiKey, setApiKey] = useState<string | null>(null);
  const path = { account_id: account.id };
  if (apiKey !== null)
    return (
      <ShownKeyDialog title={`${t('rotatedTitle')}: ${nameOf(account)}`} apiKey={apiKey} onClose={onClose}>
        <p>{t('rotatedText')}</p>
      </ShownKeyDialog>
    );
  return (
    <ConfirmAction
      title={t('rotateTitle', { name: nameOf(account) })}
      action={t('rotate')}
      preview={(signal) =>
        readEffects(
          call(
            adminApi.POST('/v1/admin/accounts/{account_id}/rotate-key', {
              params: { path, query: { dry_run: true } },
              signal,
            }),
          ),
        )
      }
      describe={(effects) => <RotateEffect effects={effects} />}
      run={(query) =>
        readDone(
          call(adminApi.POST('/v1/admin/accounts/{account_id}/rotate-key', { params: { path, query } })),
        )
      }
      onDone={({ api_key: key }) => setApiKey(key)}
      onClose={onClose}
    />
  );
}

function RotateEffect({ effects }: { readonly effects: Schema<'DryRunOfRotation'>['effects'] }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { requests, requests_last_hour: lastHour, last_used_at: lastUsed, user_email: user } = effects;
  return (
    <>
      <p>{t('rotateText')}</p>
      <p>
        {lastHour > 0
          ? t('usedLastHour', { count: lastHour })
          : lastUsed === null
            ? t('neverUsed')
            : t('notUsedLastHour', { time: format.dateTime(lastUsed) })}
        {requests > 0 && ` ${t('runningFinish', { count: requests })}`}
      </p>
      {user !== null && <p>{t('ownerSeesKey', { email: user })}</p>}
    </>
  );
}
