import { useAddressFilters } from '../../lib/address-filters.ts';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { summarizeHours, type ModelHour, type Pricing } from '../../lib/models.ts';
import { Button } from '../../ui/button.tsx';
import { HourBars } from '../../ui/hour-bars.tsx';
import { ModelPrices } from '../../ui/model-prices.tsx';
import { Money } from '../../ui/money.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import type en from './messages.en.ts';
import { ModelFilters, noFilters, readFilters } from './model-filters.tsx';
import { OpenModel } from './open-model.tsx';
import { useHistories, useSpendToday, type AdminModel, type Spend } from './read-catalog.ts';
import { RouteBadges } from './route-badges.tsx';
import { StateBadge } from './state-badge.tsx';
import { filterModels, type ModelView } from './routes.ts';

export function ModelList({ models }: { readonly models: readonly ModelView[] }) {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const columns = useColumns(useHistories().data, useSpendToday().data);
  const shown = filterModels(models, readFilters(filters));
  if (models.length === 0)
    return (
      <EmptyState title={t('noModels')}>
        {t.nodes('noModelsText', { file: <code>catalog.yaml</code> })}
      </EmptyState>
    );
  return (
    <div class="admin-models-list">
      <ModelFilters models={models} filters={filters} onChange={change} />
      <section class="card">
        <p class="soft small" role="status">
          {t('found', { count: shown.length })}
        </p>
        {shown.length === 0 ? (
          <EmptyState
            title={t('nothingMatches')}
            action={<Button onClick={() => change(noFilters)}>{t('clearFilters')}</Button>}
          />
        ) : (
          <Table caption={t('models')} columns={columns} rows={shown} keyOf={({ model }) => model.id} />
        )}
      </section>
    </div>
  );
}

function useColumns(
  histories: Readonly<Record<string, readonly ModelHour[]>> | undefined,
  spend: ReadonlyMap<string, Spend> | undefined,
): readonly Column<ModelView>[] {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const format = useFormat();
  return [
    {
      name: t('model'),
      isHeader: true,
      render: ({ model: { id, type } }) => (
        <>
          <OpenModel id={id} />
          <span class="admin-models-beside">{common(`modelType_${type}`)}</span>
        </>
      ),
    },
    { name: t('state'), render: ({ state }) => <StateBadge state={state} /> },
    { name: t('routes'), render: (view) => <RouteNames view={view} /> },
    { name: t('prices'), isMinor: true, render: ({ model }) => <Prices model={model} /> },
    {
      name: t('day'),
      render: ({ model: { id } }) => <Day id={id} hours={histories?.[id]} />,
    },
    {
      name: t('requestsToday'),
      isNumber: true,
      render: ({ model: { id } }) => {
        if (spend === undefined) return '…';
        const { requests = 0, failures = 0 } = spend.get(id) ?? {};
        return (
          <>
            {format.number(requests)}
            {failures > 0 && (
              <span class="admin-models-beside bad">{t('failedCount', { count: failures })}</span>
            )}
          </>
        );
      },
    },
    {
      name: t('marginToday'),
      isNumber: true,
      render: ({ model: { id } }) => {
        const margin = spend?.get(id)?.margin ?? null;
        return margin === null ? '–' : <Money value={margin} />;
      },
    },
  ];
}

function RouteNames({ view: { routes, state } }: { readonly view: ModelView }) {
  return (
    <ul class="admin-models-routes">
      {routes.map((route) => (
        <li key={route.upstream}>
          {route.upstream} <RouteBadges route={route} isQuiet={state === 'disabled'} />
          <span class="admin-models-beside">{route.upstreamModels.join(', ')}</span>
        </li>
      ))}
    </ul>
  );
}

export const Prices = ({ model: { pricing, type } }: { readonly model: AdminModel }) => (
  // The description of the API says that it is that of `GET /v1/models`.
  <div class="admin-models-prices">
    <ModelPrices model={{ pricing: pricing as unknown as Pricing, type }} />
  </div>
);

function Day({ id, hours }: { readonly id: string; readonly hours: readonly ModelHour[] | undefined }) {
  const common = useCommon();
  const format = useFormat();
  if (hours === undefined) return <span class="admin-models-bars" />;
  const { successShare } = summarizeHours(hours);
  return (
    <div class="admin-models-bars">
      <HourBars name={id} hours={hours} />
      <span class="admin-models-beside">
        {successShare === null ? common('noRequests') : format.percent(successShare)}
      </span>
    </div>
  );
}
