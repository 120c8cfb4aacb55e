import type { ApiAccount } from '../../lib/accounts.ts';
import { useFormat } from '../../lib/format.ts';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import { config } from '../../lib/page-facts.ts';
import { Notice } from '../../ui/notice.tsx';
import { hasExpired } from './account-badges.tsx';
import { useGift } from './gift.ts';
import type en from './messages.en.ts';
import type { ShownKey } from './shown-key.ts';

/** What the owner must know of an account before anything else. */
export function AccountNotices({
  account,
  grant,
}: {
  readonly account: ApiAccount;
  readonly grant: ShownKey['grant'];
}) {
  return (
    <>
      {grant !== null && <GrantNotice grant={grant} />}
      {account.ban && <BanNotice account={account} />}
      {!account.ban && hasExpired(account) && <ExpiryNotice account={account} />}
    </>
  );
}

function GrantNotice({ grant }: { readonly grant: NonNullable<ShownKey['grant']> }) {
  const t = useMessages<typeof en>();
  const language = useLanguage();
  const gift = useGift()(grant.balance, grant.free_requests);
  if (grant.reason === null)
    return (
      <Notice tone="good" title={t('createdTitle')}>
        <p>{t('createdGranted', { gift })}</p>
      </Notice>
    );
  const reason = language === 'en' ? grant.message_en : grant.message_ru;
  return (
    <Notice title={t('createdTitle')}>
      <p>
        {grant.reason === 'not_offered' ? '' : reason} {t('createdNoGift')}
      </p>
    </Notice>
  );
}

function BanNotice({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const email = config.support_email;
  return (
    <Notice tone="bad" title={t('bannedTitle')}>
      <p>{t('bannedText')}</p>
      {email !== null && (
        <p>
          {t.nodes('bannedSupport', {
            email: <a href={`mailto:${email}`}>{email}</a>,
            id: <code class="keys-id">{account.user_balance_id}</code>,
          })}
        </p>
      )}
    </Notice>
  );
}

function ExpiryNotice({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <Notice tone="warning" title={t('expiredTitle')}>
      <p>{t('expiredText', { time: format.dateTime(account.limits!.expires_at!) })}</p>
    </Notice>
  );
}
