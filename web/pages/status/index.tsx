import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Card, Stat } from '../../ui/card.tsx';
import { ErrorState } from '../../ui/states.tsx';
import { Checks, Headline } from './checks.tsx';
import type en from './messages.en.ts';
import { ModelRows } from './model-rows.tsx';
import { Servers } from './servers.tsx';
import './status.css';
import { useHealth, useSummary } from '../../lib/system.ts';

export default function StatusPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page status">
      <header class="page-head">
        <div>
          <h1>{t('title')}</h1>
          <UpdatedAt />
        </div>
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
  const { data, error, refetch } = useSummary();
  if (data === undefined && error !== null)
    return (
      <Card title={t('traffic')}>
        <ErrorState error={error} onRetry={refetch} />
      </Card>
    );
  // The figures keep their places while they are loading. The API has a rate of 0 where nothing was counted.
  const hasRate = data !== undefined && data.total_requests > 0;
  return (
    <Card title={t('traffic')}>
      <div class="stats" aria-busy={data === undefined}>
        <Stat label={t('requests')}>{data === undefined ? '–' : format.number(data.total_requests)}</Stat>
        <Stat label={t('tokens')}>
          {data === undefined ? (
            '–'
          ) : (
            <span title={format.number(data.total_tokens)}>{format.short(data.total_tokens)}</span>
          )}
        </Stat>
        <Stat label={t('success')}>{hasRate ? format.percent(data.success_rate / 100) : '–'}</Stat>
      </div>
    </Card>
  );
}
