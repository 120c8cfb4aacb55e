import { useState } from 'preact/hooks';
import type { ApiAccount } from '../../lib/accounts.ts';
import { api, call } from '../../lib/api.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { ConfirmByCode } from '../../ui/confirm-by-code.tsx';
import { showToast } from '../../ui/toast.tsx';
import { forgetAccount } from './account-changes.ts';
import type en from './messages.en.ts';

export function UnlinkCard({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const [isOpen, setIsOpen] = useState(false);
  const params = { path: { account_id: account.id } };
  return (
    <Card
      title={t('unlinkHead')}
      actions={
        <Button size="small" onClick={() => setIsOpen(true)}>
          {t('unlink')}
        </Button>
      }
    >
      <p class="prose small soft">{t('unlinkText')}</p>
      <ConfirmByCode
        title={t('unlinkTitle', { label: account.label })}
        action={t('unlink')}
        kind="danger"
        isOpen={isOpen}
        onClose={() => setIsOpen(false)}
        requestCode={(email) =>
          call(api.POST('/v1/web/api-accounts/{account_id}/unlink/request-code', { params, body: { email } }))
        }
        confirm={(body) => call(api.DELETE('/v1/web/api-accounts/{account_id}', { params, body }))}
        onDone={() => {
          setIsOpen(false);
          showToast(t('unlinked'));
          forgetAccount(account.id);
        }}
      >
        <p>{t('unlinkText')}</p>
        <p>{t('unlinkKeepKey')}</p>
      </ConfirmByCode>
    </Card>
  );
}
