import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Card, Stat } from '../../ui/card.tsx';
import { ErrorState, QueryView, Skeleton } from '../../ui/states.tsx';
import { Checks, Headline } from './checks.tsx';
import type en from './messages.en.ts';
import { ModelRows } from './model-rows.tsx';
import { Servers } from './servers.tsx';
import './status.css';
import { useHealth, useSummary } from './system-queries.ts';

export default function StatusPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page status">
      <header class="page-head">
        <h1>{t('title')}</h1>
        <UpdatedAt />
      </header>
      <SystemHealth />
      <Traffic />
      <Card title={t('models')}>
        <p class="small soft">{t('modelsText')}</p>
        <ModelRows />
      </Card>
      <Servers />
    </div>
  );
}

function UpdatedAt() {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { dataUpdatedAt } = useHealth();
  return (
    <p class="small">
      {dataUpdatedAt === 0 ? t('refreshes') : t('updated', { time: format.time(dataUpdatedAt) })}
    </p>
  );
}

function SystemHealth() {
  const query = useHealth();
  const { data: health, error } = query;
  if (health === undefined && error !== null) return <ErrorState error={error} onRetry={query.refetch} />;
  return (
    <section class="card status-health">
      <Headline health={health ?? null} />
      <Checks health={health ?? null} />
    </section>
  );
}

function Traffic() {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const query = useSummary();
  return (
    <Card title={t('traffic')}>
      <QueryView query={query} loading={<Skeleton lines={1} height="5.3rem" />}>
        {({ total_requests: requests, total_tokens: tokens, success_rate: rate }) => (
          <div class="stats">
            <Stat label={t('requests')}>{format.number(requests)}</Stat>
            <Stat label={t('tokens')}>
              <span title={format.number(tokens)}>{format.short(tokens)}</span>
            </Stat>
            {/* The API has 0 where nothing was counted. */}
            <Stat label={t('success')}>{requests === 0 ? '–' : format.percent(rate / 100)}</Stat>
          </div>
        )}
      </QueryView>
    </Card>
  );
}
