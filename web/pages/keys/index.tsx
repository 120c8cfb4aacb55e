import { useEffect, useState } from 'preact/hooks';
import { useAccounts } from '../../lib/accounts.ts';
import { useMessages } from '../../lib/language.tsx';
import { config } from '../../lib/page-facts.ts';
import { Button } from '../../ui/button.tsx';
import { useSecret } from '../../ui/secret-dialog.tsx';
import { QueryView } from '../../ui/states.tsx';
import { AccountList } from './account-list.tsx';
import { AccountView } from './account-view.tsx';
import { FirstAccount } from './first-account.tsx';
import { KeysLoading } from './keys-loading.tsx';
import { LinkDialog } from './link-dialog.tsx';
import type en from './messages.en.ts';
import type { ShownKey } from './shown-key.ts';
import './keys.css';

export default function KeysPage() {
  const t = useMessages<typeof en>();
  const { query, selected } = useAccounts();
  const [isLinking, setIsLinking] = useState(false);
  const [shownKey, setShownKey] = useState<ShownKey | null>(null);
  const selectedId = selected?.id ?? null;
  useEffect(() => {
    // A key is shown with its own account only.
    if (shownKey !== null && selectedId !== null && shownKey.accountId !== selectedId) setShownKey(null);
  }, [shownKey, selectedId]);
  const isOnlyHere = shownKey !== null && shownKey.isNew && !config.keys_shown_again;
  const hideKey = (): void => setShownKey(null);
  const guard = useSecret({
    secret: isOnlyHere ? shownKey.apiKey : null,
    loss: t('keyNotCopied'),
    onLeave: hideKey,
  });
  const link = (): void => setIsLinking(true);
  return (
    <div class="page keys">
      <header class="page-head">
        <div>
          <h1>{t('title')}</h1>
          <p>{t('intro')}</p>
        </div>
        {selected !== null && (
          <Button icon="plus" onClick={link}>
            {t('linkAccount')}
          </Button>
        )}
      </header>
      <QueryView query={query} loading={<KeysLoading />}>
        {(accounts) =>
          selected === null ? (
            <FirstAccount onShowKey={setShownKey} onLink={link} />
          ) : (
            <>
              {accounts.length > 1 && <AccountList accounts={accounts} selected={selected} />}
              <AccountView
                key={selected.id}
                account={selected}
                shownKey={shownKey?.accountId === selected.id ? shownKey : null}
                onShowKey={setShownKey}
                onHideKey={() => guard.leave(hideKey)}
                onKeyTaken={guard.take}
              />
            </>
          )
        }
      </QueryView>
      {guard.question}
      <LinkDialog isOpen={isLinking} onClose={() => setIsLinking(false)} />
    </div>
  );
}
