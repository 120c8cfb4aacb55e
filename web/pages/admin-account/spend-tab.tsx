import { useQuery } from '@tanstack/preact-query';
import { useMemo } from 'preact/hooks';
import { adminApi, call } from '../../admin/api.ts';
import { ModelLink } from '../../admin/links.tsx';
import { Margin } from '../../admin/request-table.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Stat } from '../../ui/card.tsx';
import { Chart } from '../../ui/chart.tsx';
import { Money } from '../../ui/money.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import type en from './messages.en.ts';
import { addSpend, costByDay, lastDays, sumByModel, type SpendRow } from './spend.ts';

/** What it has spent in 30 days, by day and by model. */
export function SpendTab({ accountId }: { readonly accountId: string }) {
  const t = useMessages<typeof en>();
  const query = useQuery({
    queryKey: ['account-spend', accountId],
    queryFn: async ({ signal }) => {
      const days = lastDays();
      const range = { since: days[0]!, until: days.at(-1)! };
      const spend = await call(
        adminApi.GET('/v1/admin/spend', {
          params: { query: { account: accountId, by: 'model,day', ...range } },
          signal,
        }),
      );
      if (typeof spend === 'string') throw new TypeError('the sums came as CSV');
      return { days, rows: spend.data };
    },
  });
  return (
    <QueryView query={query} loading={<Skeleton lines={10} height="2rem" />}>
      {({ days, rows }) =>
        rows.length === 0 ? (
          <EmptyState title={t('noSpend')}>{t('noSpendText')}</EmptyState>
        ) : (
          <Spend days={days} rows={rows} />
        )
      }
    </QueryView>
  );
}

function Spend({ days, rows }: { readonly days: readonly string[]; readonly rows: readonly SpendRow[] }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const all = useMemo(() => addSpend(rows), [rows]);
  return (
    <>
      <div class="stats">
        <Stat label={t('spent')}>
          <Money value={all.cost} />
        </Stat>
        <Stat
          label={t('vendorCost')}
          note={all.costed_requests < all.requests ? t('partlyKnown') : undefined}
        >
          {all.vendor_cost === null ? '–' : <Money value={all.vendor_cost} />}
        </Stat>
        <Stat label={t('margin')}>
          <Margin value={all.margin} />
        </Stat>
        <Stat label={t('requestCount')} note={t('failures', { count: all.failures })}>
          {format.number(all.requests)}
        </Stat>
      </div>
      <CostChart days={days} rows={rows} />
      <Table
        caption={t('byModel')}
        columns={useColumns()}
        rows={useMemo(() => sumByModel(rows), [rows])}
        keyOf={({ model }) => model ?? ''}
      />
    </>
  );
}

function CostChart({ days, rows }: { readonly days: readonly string[]; readonly rows: readonly SpendRow[] }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const times = useMemo(() => days.map((day) => Date.parse(`${day}T00:00:00Z`) / 1_000), [days]);
  const series = useMemo(
    () => [{ name: t('spent'), values: costByDay(rows, days), format: (cost: number) => format.money(cost) }],
    [days, rows, format, t],
  );
  return (
    <div>
      <h2 class="admin-account-subtitle">{t('byDay')}</h2>
      <Chart
        title={t('byDay')}
        times={times}
        formatTime={(seconds) => format.day(new Date(seconds * 1_000).toISOString().slice(0, 10))}
        series={series}
        height={200}
      />
    </div>
  );
}

function useColumns(): readonly Column<SpendRow>[] {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const count = (name: string, read: (row: SpendRow) => number, isMinor = true): Column<SpendRow> => ({
    name,
    isNumber: true,
    isMinor,
    render: (row) => format.number(read(row)),
  });
  return [
    { name: t('model'), isHeader: true, render: ({ model }) => <ModelLink id={model ?? ''} /> },
    count(t('requestCount'), (row) => row.requests, false),
    count(t('failureCount'), (row) => row.failures),
    count(t('inputTokens'), (row) => row.prompt_tokens),
    count(t('outputTokens'), (row) => row.completion_tokens),
    { name: t('spent'), isNumber: true, render: ({ cost }) => <Money value={cost} /> },
    {
      name: t('vendorCost'),
      isNumber: true,
      isMinor: true,
      render: ({ vendor_cost: cost }) => (cost === null ? '–' : <Money value={cost} />),
    },
    { name: t('margin'), isNumber: true, isMinor: true, render: ({ margin }) => <Margin value={margin} /> },
  ];
}
