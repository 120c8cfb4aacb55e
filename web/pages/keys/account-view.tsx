import pencil from '@phosphor-icons/core/assets/regular/pencil-simple.svg?raw';
import { useState } from 'preact/hooks';
import type { ApiAccount } from '../../lib/accounts.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Stat } from '../../ui/card.tsx';
import { SvgIcon } from '../../ui/icon.tsx';
import { Money } from '../../ui/money.tsx';
import { AccountBadges } from './account-badges.tsx';
import { AccountNotices } from './account-notices.tsx';
import { KeyCard, type KeyProps } from './key-card.tsx';
import { LimitsCard } from './limits-card.tsx';
import type en from './messages.en.ts';
import { RedeemCard } from './redeem-card.tsx';
import { RefillsCard } from './refills-card.tsx';
import { RenameDialog } from './rename-dialog.tsx';
import { SnippetsCard } from './snippets-card.tsx';
import { UnlinkCard } from './unlink-card.tsx';

/** Everything about one account. */
export function AccountView(props: KeyProps) {
  const { account, shownKey, onKeyTaken } = props;
  return (
    <>
      <AccountNotices account={account} grant={shownKey?.grant ?? null} />
      <Summary account={account} />
      <div class="keys-pair">
        <KeyCard {...props} />
        <RedeemCard account={account} />
      </div>
      <SnippetsCard account={account} apiKey={shownKey?.apiKey ?? null} onCopied={onKeyTaken} />
      <LimitsCard account={account} />
      <RefillsCard account={account} />
      <UnlinkCard account={account} />
    </>
  );
}

function Summary({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const [isRenaming, setIsRenaming] = useState(false);
  const threshold = account.low_balance ?? null;
  const isLow = threshold !== null && Number(account.balance) < Number(threshold);
  return (
    <section class="card">
      <header class="card-head">
        <div class="keys-name">
          <h2>{account.label}</h2>
          <Button
            kind="quiet"
            size="small"
            class="icon-only"
            aria-label={t('renameTitle')}
            onClick={() => setIsRenaming(true)}
          >
            <SvgIcon svg={pencil} />
          </Button>
          <AccountBadges account={account} />
        </div>
      </header>
      <div class="stats keys-stats">
        <Stat
          label={t('balance')}
          note={
            isLow ? (
              <span class="keys-low">{t('belowThreshold', { amount: format.money(threshold) })}</span>
            ) : (
              t('addedInTotal', { amount: format.money(account.total_balance_added) })
            )
          }
        >
          <Money value={account.balance} />
        </Stat>
        <Stat label={t('freeRequests')} note={t('freeRequestsNote')}>
          {format.number(account.free_requests)}
        </Stat>
        <Stat
          label={t('spentLastHour')}
          note={t('averageRpm', { rate: format.number(account.average_rpm ?? 0) })}
        >
          <Money value={account.total_cost_request_last_hour ?? 0} />
        </Stat>
        {typeof account.requests_per_minute === 'number' && (
          <Stat label={t('rpm')} note={t('rpmNote')}>
            {format.number(account.requests_per_minute)}
          </Stat>
        )}
      </div>
      <RenameDialog account={account} isOpen={isRenaming} onClose={() => setIsRenaming(false)} />
    </section>
  );
}
