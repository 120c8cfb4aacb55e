import type { ApiAccount } from '../../lib/accounts.ts';
import type { Stats } from '../../lib/daily-stats.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { SiteLink } from '../../frame/site-link.tsx';
import { Card, Stat } from '../../ui/card.tsx';
import { Money } from '../../ui/money.tsx';
import type en from './messages.en.ts';
import type { Profile } from './use-profile.ts';

/** The numbers of an account. Those that are still being read have a dash. */
export function Figures({
  account,
  profile,
  stats,
}: {
  readonly account: ApiAccount;
  readonly profile: Profile | null;
  readonly stats: Stats | null;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const hour = profile?.request_count_last_hour;
  return (
    <Card title={account.label} actions={<SiteLink href="/keys">{t('manage')}</SiteLink>}>
      <div class="stats">
        <Stat label={t('balance')}>
          <Money value={profile?.balance ?? account.balance} />
        </Stat>
        <Stat label={t('freeRequests')}>
          {format.number(profile?.free_requests ?? account.free_requests)}
        </Stat>
        <Stat
          label={t('lastHour')}
          note={
            hour !== undefined &&
            t.nodes('requestsFor', {
              cost: <Money key="cost" value={profile?.total_cost_request_last_hour ?? 0} />,
            })
          }
        >
          {hour === undefined ? '–' : format.number(hour)}
        </Stat>
        <Stat
          label={t('spent30')}
          note={stats !== null && t('requestCount', { count: stats.total_requests })}
        >
          {stats === null ? '–' : <Money value={stats.total_cost} />}
        </Stat>
      </div>
    </Card>
  );
}
