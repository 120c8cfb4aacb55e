import { NoAccount } from '../../frame/no-account.tsx';
import { SiteLink } from '../../frame/site-link.tsx';
import { useAccounts, type ApiAccount } from '../../lib/accounts.ts';
import { dayBefore, statsDays, useDailyStats } from '../../lib/daily-stats.ts';
import { useMessages } from '../../lib/language.tsx';
import { Notice } from '../../ui/notice.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { Figures } from './figures.tsx';
import { FirstSteps } from './first-steps.tsx';
import type en from './messages.en.ts';
import { RunningWork } from './running-work.tsx';
import { TopModels } from './top-models.tsx';
import { UsageCharts } from './usage-charts.tsx';
import { useProfile } from './use-profile.ts';

/** What the chosen account has and uses, and what to do first with a new one. */
export function Overview() {
  const t = useMessages<typeof en>();
  const { query, selected } = useAccounts();
  return (
    <div class="page home">
      <header class="page-head">
        <h1>{t('title')}</h1>
      </header>
      <QueryView query={query} loading={<LoadingAccount />}>
        {() =>
          selected === null ? (
            <section class="card">
              <NoAccount title={t('noAccount')} action={t('createAccount')}>
                {t('noAccountText')}
              </NoAccount>
            </section>
          ) : (
            <Account key={selected.id} account={selected} />
          )
        }
      </QueryView>
    </div>
  );
}

const LoadingAccount = () => (
  <>
    <Skeleton lines={1} height="7.5rem" />
    <Skeleton lines={1} height="21rem" />
  </>
);

function Account({ account }: { readonly account: ApiAccount }) {
  const profile = useProfile(account.id);
  // Today, and the days before it.
  const stats = useDailyStats(account.id, { since: dayBefore(statsDays - 1), until: dayBefore(0) });
  const hasNoRequests =
    stats.data?.total_requests === 0 && (profile.data?.request_count_last_hour ?? 0) === 0;
  return (
    <>
      <AccountNotice account={account} />
      <Figures account={account} profile={profile.data ?? null} stats={stats.data ?? null} />
      {hasNoRequests ? (
        <FirstSteps />
      ) : (
        <QueryView query={stats} loading={<Skeleton lines={1} height="21rem" />}>
          {({ daily_stats: days }) => (
            <>
              <UsageCharts stats={days} />
              <TopModels stats={days} />
            </>
          )}
        </QueryView>
      )}
      {/* The last: nothing is moved by what loads before it. */}
      {!stats.isPending && <RunningWork accountId={account.id} />}
    </>
  );
}

/** Why requests of the account would be refused. */
function AccountNotice({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  if (account.ban) return <Notice tone="bad" title={t('banned')} />;
  if (Number(account.balance) > 0 || account.free_requests > 0) return null;
  return (
    <Notice tone="warning" title={t('nothingLeft')}>
      <p>
        {t.nodes('nothingLeftText', {
          keys: (
            <SiteLink key="keys" href="/keys">
              {t('redeem')}
            </SiteLink>
          ),
        })}
      </p>
    </Notice>
  );
}
