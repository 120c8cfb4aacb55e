import { useMutation } from '@tanstack/preact-query';
import { api, call } from '../../lib/api.ts';
import { useMessages } from '../../lib/language.tsx';
import { selectAccount } from '../../lib/selected-account.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState, ErrorText } from '../../ui/states.tsx';
import { noteAccount } from './account-changes.ts';
import type en from './messages.en.ts';
import type { ShowKey } from './shown-key.ts';

/** What somebody without an account sees. */
export function FirstAccount({
  onShowKey,
  onLink,
}: {
  readonly onShowKey: ShowKey;
  readonly onLink: () => void;
}) {
  const t = useMessages<typeof en>();
  const create = useMutation({
    mutationFn: () => call(api.POST('/v1/web/api-accounts/first', { body: { label: t('defaultLabel') } })),
    onSuccess: ({ account, api_key: apiKey, grant }) => {
      onShowKey({ accountId: account.id, apiKey, isNew: true, grant });
      noteAccount(account);
      selectAccount(account.id);
    },
  });
  return (
    <div class="card">
      <EmptyState
        title={t('noAccountTitle')}
        action={
          <div class="keys-first">
            <div class="keys-buttons">
              <Button kind="primary" busy={create.isPending} onClick={() => create.mutate()}>
                {t('createAccount')}
              </Button>
              <Button onClick={onLink}>{t('haveKey')}</Button>
            </div>
            <ErrorText error={create.error} />
          </div>
        }
      >
        <p>{t('noAccountText')}</p>
      </EmptyState>
    </div>
  );
}
