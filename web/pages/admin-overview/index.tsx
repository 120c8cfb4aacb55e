import './admin-overview.css';
import { SiteLink } from '../../frame/site-link.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { describeError } from '../../lib/api-error.ts';
import { useFormat } from '../../lib/format.ts';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import { lazy } from '../../lib/lazy.tsx';
import { ErrorState, Skeleton } from '../../ui/states.tsx';
import { FailingModels } from './failing-models.tsx';
import { LedgerLag } from './ledger-lag.tsx';
import type en from './messages.en.ts';
import { PartCard } from './part-card.tsx';
import { ProblemList } from './problem-list.tsx';
import { ProcessList } from './process-list.tsx';
import { QueueTable } from './queue-table.tsx';
import { TrafficChart } from './traffic-chart.tsx';
import { TrafficTable } from './traffic-table.tsx';
import { UpstreamSlots } from './upstream-slots.tsx';
import { useOverview, type Overview } from './use-overview.ts';

const loading = () => <Skeleton lines={8} height="2.5rem" />;
const SetupView = lazy(async () => (await import('./setup/setup-view.tsx')).SetupView, loading);
const LedgerView = lazy(async () => (await import('./ledger/ledger-view.tsx')).LedgerView, loading);

export default function AdminOverviewPage() {
  const [params] = useAddressFilters();
  switch (params.get('view')) {
    case 'setup':
      return <SetupView />;
    case 'ledger':
      return <LedgerView />;
    default:
      return <Now />;
  }
}

/** What happens now. Only this is read again and again. */
function Now() {
  const t = useMessages<typeof en>();
  const { data, error, refetch } = useOverview();
  return (
    <div class="page admin-overview">
      <div class="page-head">
        <h1>{t('title')}</h1>
        <div class="admin-overview-head">
          <Freshness at={data?.at} error={error} />
          <SiteLink href="/admin?view=setup" class="button secondary medium">
            {t('toSetup')}
          </SiteLink>
        </div>
      </div>
      {data === undefined && error !== null ? (
        <ErrorState error={error} onRetry={refetch} />
      ) : (
        <div class="admin-overview-grid">
          {data === undefined ? (
            <section class="card admin-overview-problems">
              <Skeleton lines={3} height="1.75rem" />
            </section>
          ) : (
            <ProblemList overview={data} />
          )}
          <Parts overview={data} />
        </div>
      )}
    </div>
  );
}

/** The parts, in a grid. Each keeps its place while it is loading, and when it could not be read. */
function Parts({ overview }: { readonly overview: Overview | undefined }) {
  const t = useMessages<typeof en>();
  return (
    <div class="admin-overview-parts">
      <PartCard title={t('traffic')} data={overview?.traffic} least={30}>
        {(traffic) => <TrafficTable traffic={traffic} />}
      </PartCard>
      <PartCard title={t('last24')} data={overview?.traffic} least={30}>
        {({ hours }) => <TrafficChart hours={hours} />}
      </PartCard>
      <PartCard title={t('queues')} data={overview?.queues} least={19.5}>
        {(queues) => <QueueTable queues={queues} />}
      </PartCard>
      <PartCard title={t('mostFailed')} data={overview?.traffic} least={11}>
        {(traffic) => <FailingModels traffic={traffic} />}
      </PartCard>
      <PartCard title={t('slots')} data={overview?.upstreams} least={16}>
        {(upstreams) => <UpstreamSlots upstreams={upstreams} />}
      </PartCard>
      <div class="admin-overview-pair">
        <PartCard id="processes" title={t('processes')} data={overview?.processes} least={11.75}>
          {(processes) => <ProcessList processes={processes} />}
        </PartCard>
        <PartCard id="ledger" title={t('ledger')} data={overview?.ledger} least={10.5}>
          {(ledger) => <LedgerLag ledger={ledger} />}
        </PartCard>
      </div>
    </div>
  );
}

/** When the numbers were read; and why they are old, if they are. */
function Freshness({ at, error }: { readonly at: string | undefined; readonly error: unknown }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const language = useLanguage();
  if (at === undefined) return <p class="small">{t('live')}</p>;
  const time = <time dateTime={at}>{format.clock(at)}</time>;
  return error === null ? (
    <p class="small admin-overview-fresh">{t.nodes('updated', { time })}</p>
  ) : (
    <p class="small admin-overview-stale" role="alert">
      {t.nodes('stale', { time, reason: describeError(error, language) })}
    </p>
  );
}
