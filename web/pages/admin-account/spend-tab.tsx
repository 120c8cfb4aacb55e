import { useQuery } from '@tanstack/preact-query';
import { useMemo } from 'preact/hooks';
import { ModelLink } from '../../admin/links.tsx';
import { CostChart } from '../../admin/spend/cost-chart.tsx';
import { useSpendColumns } from '../../admin/spend/spend-columns.tsx';
import { SpendStats } from '../../admin/spend/spend-stats.tsx';
import {
  addDays,
  addSpend,
  listDays,
  readSpend,
  sumByModel,
  type SpendRow,
} from '../../admin/spend/spend.ts';
import { dayBefore } from '../../lib/daily-stats.ts';
import { useMessages } from '../../lib/language.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';

const spendDays = 30;

/** What it has spent in 30 days, by day and by model. */
export function SpendTab({ accountId }: { readonly accountId: string }) {
  const t = useMessages<typeof en>();
  const query = useQuery({
    queryKey: ['account-spend', accountId],
    queryFn: async ({ signal }) => {
      const until = dayBefore(0);
      const since = addDays(until, 1 - spendDays);
      const { data } = await readSpend({ account: accountId, by: 'model,day', since, until }, signal);
      return { days: listDays(since, until), rows: data };
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
  const columns = useSpendColumns<SpendRow>();
  return (
    <>
      <SpendStats sums={useMemo(() => addSpend(rows), [rows])} />
      <div>
        <h2 class="admin-account-subtitle">{t('byDay')}</h2>
        <CostChart title={t('byDay')} days={days} rows={rows} />
      </div>
      <Table
        caption={t('byModel')}
        columns={[
          { name: t('model'), isHeader: true, render: ({ model }) => <ModelLink id={model ?? ''} /> },
          ...columns,
        ]}
        rows={useMemo(() => sumByModel(rows), [rows])}
        keyOf={({ model }) => model ?? ''}
      />
    </>
  );
}
