import { useState } from 'preact/hooks';
import type { ApiAccount } from '../../lib/accounts.ts';
import { api, call } from '../../lib/api.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { config } from '../../lib/page-facts.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { ConfirmByCode } from '../../ui/confirm-by-code.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { showToast } from '../../ui/toast.tsx';
import { noteChange } from './account-changes.ts';
import type en from './messages.en.ts';
import type { ShowKey, ShownKey } from './shown-key.ts';

export interface KeyProps {
  readonly account: ApiAccount;
  readonly shownKey: ShownKey | null;
  readonly onShowKey: ShowKey;
  /** Called by the button that hides it. */
  readonly onHideKey: () => void;
  /** Called once it was copied. */
  readonly onKeyTaken: () => void;
}

/** The key: masked, or whole after a code has confirmed it, and what it works for. */
export function KeyCard(props: KeyProps) {
  const { account, shownKey, onHideKey, onKeyTaken } = props;
  const t = useMessages<typeof en>();
  const [action, setAction] = useState<'reveal' | 'regenerate' | null>(null);
  const close = (): void => setAction(null);
  const isShown = shownKey !== null;
  return (
    <Card
      title={t('key')}
      actions={
        <div class="keys-buttons">
          {isShown ? (
            <Button size="small" onClick={onHideKey}>
              {t('hide')}
            </Button>
          ) : (
            config.keys_shown_again && (
              <Button size="small" onClick={() => setAction('reveal')}>
                {t('reveal')}
              </Button>
            )
          )}
          {!account.ban && (
            <Button size="small" icon="refresh" onClick={() => setAction('regenerate')}>
              {t('regenerate')}
            </Button>
          )}
        </div>
      }
    >
      <div>
        <p class="keys-key">
          <code>{isShown ? shownKey.apiKey : account.key_masked}</code>
          {isShown && <CopyButton text={shownKey.apiKey} label={t('copyKey')} onCopied={onKeyTaken} />}
        </p>
        <p class="small soft" aria-live="polite">
          {t(isShown ? 'keyShown' : 'keyHidden')}
        </p>
      </div>
      <KeyFacts account={account} />
      <RevealDialog {...props} isOpen={action === 'reveal'} onClose={close} />
      <RegenerateDialog {...props} isOpen={action === 'regenerate'} onClose={close} />
    </Card>
  );
}

function KeyFacts({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const expiresAt = account.limits?.expires_at ?? null;
  const addresses = account.limits?.addresses ?? null;
  return (
    <dl class="keys-facts">
      <dt>{t('accountId')}</dt>
      <dd>
        <code class="keys-id">{account.user_balance_id}</code>
        <CopyButton text={account.user_balance_id} label={t('copyAccountId')} />
      </dd>
      <dt>{t('validUntil')}</dt>
      <dd>{expiresAt === null ? t('noExpiry') : format.dateTime(expiresAt)}</dd>
      <dt>{t('allowedFrom')}</dt>
      <dd>
        {addresses === null ? (
          t('anywhere')
        ) : (
          <ul class="keys-tags">
            {addresses.map((address) => (
              <li key={address} class="tag">
                {address}
              </li>
            ))}
          </ul>
        )}
      </dd>
    </dl>
  );
}

interface KeyDialogProps extends KeyProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

function RevealDialog({ account, onShowKey, isOpen, onClose }: KeyDialogProps) {
  const t = useMessages<typeof en>();
  const params = { path: { account_id: account.id } };
  return (
    <ConfirmByCode
      title={t('revealTitle')}
      action={t('reveal')}
      isOpen={isOpen}
      onClose={onClose}
      requestCode={(email) =>
        call(api.POST('/v1/web/api-accounts/{account_id}/reveal/request-code', { params, body: { email } }))
      }
      confirm={(body) => call(api.POST('/v1/web/api-accounts/{account_id}/reveal', { params, body }))}
      onDone={({ api_key: apiKey }) => {
        onClose();
        onShowKey({ accountId: account.id, apiKey, isNew: false, grant: null });
      }}
    >
      <p>{t('revealText')}</p>
    </ConfirmByCode>
  );
}

function RegenerateDialog({ account, onShowKey, isOpen, onClose }: KeyDialogProps) {
  const t = useMessages<typeof en>();
  const params = { path: { account_id: account.id } };
  return (
    <ConfirmByCode
      title={t('regenerateTitle')}
      action={t('regenerate')}
      kind="danger"
      isOpen={isOpen}
      onClose={onClose}
      requestCode={(email) =>
        call(
          api.POST('/v1/web/api-accounts/{account_id}/regenerate-api-key/request-code', {
            params,
            body: { email },
          }),
        )
      }
      confirm={(body) =>
        call(api.PUT('/v1/web/api-accounts/{account_id}/regenerate-api-key', { params, body }))
      }
      onDone={({ api_key: apiKey, key_masked }) => {
        onClose();
        onShowKey({ accountId: account.id, apiKey, isNew: true, grant: null });
        noteChange(account.id, { key_masked });
        showToast(t('replaced'));
      }}
    >
      <p>{t('regenerateText')}</p>
    </ConfirmByCode>
  );
}
