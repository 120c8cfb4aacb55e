import { SiteLink } from '../../frame/site-link.tsx';
import { useAccounts, type ApiAccount } from '../../lib/accounts.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Card, Stat } from '../../ui/card.tsx';
import { Money } from '../../ui/money.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import type en from './messages.en.ts';

const links = [
  { href: '/keys', text: 'toKeys' },
  { href: '/jobs', text: 'toJobs' },
  { href: '/models', text: 'toPrices' },
  { href: '/docs', text: 'toDocs' },
] as const;

/** What the chosen account has, and where to go on. */
export function Overview({ query }: { readonly query: ReturnType<typeof useAccounts>['query'] }) {
  const t = useMessages<typeof en>();
  return (
    <div class="page home">
      <h1>{t('title')}</h1>
      <QueryView query={query} loading={<Skeleton lines={2} height="8rem" />}>
        {(accounts) => (accounts.length === 0 ? <NoAccount /> : <SelectedAccount />)}
      </QueryView>
      <nav class="home-links" aria-label={t('goOn')}>
        {links.map(({ href, text }) => (
          <a key={href} class="card" href={href}>
            <h2>{t(text)}</h2>
            <p class="soft">{t(`${text}Text`)}</p>
          </a>
        ))}
      </nav>
    </div>
  );
}

function NoAccount() {
  const t = useMessages<typeof en>();
  return (
    <section class="card">
      <EmptyState
        title={t('noAccount')}
        action={
          <SiteLink href="/keys" class="button primary medium">
            {t('createAccount')}
          </SiteLink>
        }
      >
        {t('noAccountText')}
      </EmptyState>
    </section>
  );
}

function SelectedAccount() {
  const { selected } = useAccounts();
  return selected === null ? null : <Figures account={selected} />;
}

function Figures({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { balance, free_requests: free, total_cost_request_last_hour: spent, average_rpm: rate } = account;
  return (
    <Card title={account.label}>
      <div class="stats">
        <Stat label={t('balance')}>
          <Money value={balance} />
        </Stat>
        <Stat label={t('freeRequests')}>{format.number(free)}</Stat>
        <Stat label={t('spentLastHour')} note={t('averageRpm', { rate: format.number(rate ?? 0) })}>
          <Money value={spent ?? 0} />
        </Stat>
      </div>
    </Card>
  );
}
