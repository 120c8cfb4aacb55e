import type { ApiAccount } from '../../lib/accounts.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import type en from './messages.en.ts';

/** Whether the key of an account no longer works because its time is over. */
export const hasExpired = ({ limits }: ApiAccount): boolean =>
  typeof limits?.expires_at === 'string' && new Date(limits.expires_at).getTime() <= Date.now();

export function AccountBadges({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const expiresAt = account.limits?.expires_at ?? null;
  return (
    <>
      {account.is_primary && <Badge>{t('primary')}</Badge>}
      {account.ban && <Badge tone="bad">{t('banned')}</Badge>}
      {expiresAt !== null && (
        <Badge tone={hasExpired(account) ? 'bad' : 'warning'}>
          {hasExpired(account) ? t('expired') : t('expires', { date: format.date(expiresAt) })}
        </Badge>
      )}
    </>
  );
}
