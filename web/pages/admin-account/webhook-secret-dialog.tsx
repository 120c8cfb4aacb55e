import { useMutation } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { adminApi, call, consoleQueries } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readDone, readEffects, toCall, type CallPurpose } from '../../admin/dry-run.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { SecretDialog, SecretText } from '../../ui/secret-dialog.tsx';
import { ErrorText } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import { nameOf, type Account } from './account.ts';
import type en from './messages.en.ts';

const mask = `whsec_${'•'.repeat(16)}`;

/** Shows the secret that signs the webhooks of an account, once asked for, and replaces it. It is kept nowhere else. */
export function WebhookSecretDialog({
  account,
  onClose,
}: {
  readonly account: Account;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const [secret, setSecret] = useState<string | null>(null);
  /** Receivers need it. One that is shown only is what they have. */
  const [replaced, setReplaced] = useState<string | null>(null);
  const [isReplacing, setIsReplacing] = useState(false);
  const params = { path: { account_id: account.id } };
  const show = useMutation({
    gcTime: 0,
    mutationFn: () => call(adminApi.GET('/v1/admin/accounts/{account_id}/webhook-secret', { params })),
    onSuccess: async (shown) => {
      setSecret(shown.secret);
      // That it was shown is among the changes.
      await consoleQueries.invalidateQueries({ queryKey: ['account-changes', account.id] });
    },
  });
  return (
    <SecretDialog
      title={t('webhookTitle', { name: nameOf(account) })}
      secret={replaced}
      loss={t('webhookNotCopied')}
      onClose={onClose}
      actions={() => <Button onClick={() => setIsReplacing(true)}>{t('webhookReplace')}</Button>}
    >
      {(onTaken) => (
        <>
          <p>{t('webhookText')}</p>
          {secret === null ? (
            <p class="shown-secret">
              <code>{mask}</code>
              <Button size="small" busy={show.isPending} onClick={() => show.mutate()}>
                {t('webhookShow')}
              </Button>
            </p>
          ) : (
            <SecretText text={secret} label={t('webhookCopy')} onTaken={onTaken} />
          )}
          <ErrorText error={show.error} />
          <p class="soft small">{t('webhookRecorded')}</p>
          {isReplacing && (
            <ReplaceSecret
              account={account}
              onReplaced={(made) => {
                setSecret(made);
                setReplaced(made);
                setIsReplacing(false);
              }}
              onClose={() => setIsReplacing(false)}
            />
          )}
        </>
      )}
    </SecretDialog>
  );
}

function rotate(id: string, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  const params = { path: { account_id: id }, query };
  return call(adminApi.POST('/v1/admin/accounts/{account_id}/webhook-secret/rotate', { params, signal }));
}

function ReplaceSecret({
  account,
  onReplaced,
  onClose,
}: {
  readonly account: Account;
  readonly onReplaced: (secret: string) => void;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <ConfirmAction
      title={`${t('webhookReplaceTitle')}: ${nameOf(account)}`}
      action={t('webhookReplaceAction')}
      preview={(signal) => readEffects(rotate(account.id, signal))}
      describe={({ previous_until: until }) => (
        <>
          <p>{t('webhookBothSign')}</p>
          {until !== null && <p>{t('webhookEndsFirst', { time: format.dateTime(until) })}</p>}
        </>
      )}
      run={(given) => readDone(rotate(account.id, given))}
      onDone={({ secret }) => {
        showToast(t('webhookReplaced'));
        onReplaced(secret);
      }}
      onClose={onClose}
    />
  );
}
