import type { ApiAccount } from '../../lib/accounts.ts';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { dayBefore, statsDays, useDailyStats, type DailyStat } from '../../lib/daily-stats.ts';
import { useFormat, type Roubles } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { addRoubles } from '../../lib/nano.ts';
import { CsvMenu } from '../../ui/csv-menu.tsx';
import { DateRange } from '../../ui/date-range.tsx';
import { Money } from '../../ui/money.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { AccountFilter, ModelFilter } from './filters.tsx';
import type en from './messages.en.ts';
import { writeDaysCsv } from './write-days-csv.ts';

const readDay = (text: string | null): string | null =>
  text !== null && /^\d{4}-\d\d-\d\d$/.test(text) ? text : null;

/** What each model was used for on each day of the last month. */
export function DailyTotals({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const [params, change] = useAddressFilters();
  const [first, last] = [dayBefore(statsDays), dayBefore(0)];
  const since = readDay(params.get('from')) ?? first;
  const until = readDay(params.get('to')) ?? last;
  const model = params.get('model') ?? '';
  const query = useDailyStats(account.id, { since, until });
  return (
    <>
      <section class="card filters" aria-label={t('filters')}>
        <AccountFilter />
        <ModelFilter value={model} onChoose={(value) => change({ model: value })} />
        <div class="filters-period">
          <DateRange
            precision="day"
            value={{ since, until }}
            min={first}
            max={last}
            onChange={(range) => change({ from: readDay(range.since), to: readDay(range.until) })}
          />
        </div>
      </section>
      <section class="card">
        <QueryView query={query} loading={<Skeleton lines={10} height="2rem" />}>
          {({ daily_stats: stats }) => (
            <Days
              stats={stats.filter(({ model_name: name }) => model === '' || name === model).toReversed()}
            />
          )}
        </QueryView>
      </section>
    </>
  );
}

function Days({ stats }: { readonly stats: readonly DailyStat[] }) {
  const t = useMessages<typeof en>();
  const columns = useColumns();
  if (stats.length === 0) return <EmptyState title={t('noDays')}>{t('noDaysText')}</EmptyState>;
  const read = (): Promise<Response> =>
    Promise.resolve(new Response(writeDaysCsv(stats), { headers: { 'content-type': 'text/csv' } }));
  return (
    <div class="requests-log">
      <div class="requests-days-head">
        <p class="soft small">{t('daysAreUtc')}</p>
        <CsvMenu name="requests-by-day" read={read} />
      </div>
      <Table
        caption={t('viewDays')}
        columns={columns}
        rows={stats}
        keyOf={({ stat_date: day, model_name: model }) => `${day} ${model}`}
        foot={<Sums stats={stats} columns={columns} />}
      />
    </div>
  );
}

/** A day, or the sum of days, whose cost is a decimal string. */
type Row = Omit<DailyStat, 'cost_request'> & { readonly cost_request: Roubles };

const addUp = (stats: readonly DailyStat[], read: (stat: DailyStat) => number): number =>
  stats.reduce((sum, stat) => sum + read(stat), 0);

/** The row of totals: the same columns, of one that has the sums. */
function Sums({
  stats,
  columns,
}: {
  readonly stats: readonly DailyStat[];
  readonly columns: readonly Column<Row>[];
}) {
  const t = useMessages<typeof en>();
  const sums: Row = {
    stat_date: '',
    request_count: addUp(stats, (stat) => stat.request_count),
    prompt_tokens: addUp(stats, (stat) => stat.prompt_tokens),
    cache_read_tokens: addUp(stats, (stat) => stat.cache_read_tokens),
    completion_tokens: addUp(stats, (stat) => stat.completion_tokens),
    cost_request: addRoubles(stats.map((stat) => stat.cost_request)),
    free_requests: addUp(stats, (stat) => stat.free_requests),
  };
  return (
    <tr>
      <th scope="row">{t('total')}</th>
      <td class="minor" />
      {columns.slice(2).map((column) => (
        <td key={column.name} class={column.isMinor === true ? 'number minor' : 'number'}>
          {column.render(sums)}
        </td>
      ))}
    </tr>
  );
}

function useColumns(): readonly Column<Row>[] {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const count = (name: string, read: (stat: Row) => number, isMinor = true): Column<Row> => ({
    name,
    isNumber: true,
    isMinor,
    render: (stat) => format.number(read(stat)),
  });
  return [
    {
      name: t('day'),
      isHeader: true,
      render: ({ stat_date: day, model_name: model }) => (
        <>
          <span class="requests-day">{format.day(day)}</span>
          <span class="requests-beside">{model}</span>
        </>
      ),
    },
    {
      name: t('model'),
      isMinor: true,
      render: ({ model_name: model }) => <span class="requests-model">{model}</span>,
    },
    count(t('requests'), (stat) => stat.request_count, false),
    count(t('input'), (stat) => stat.prompt_tokens),
    count(t('ofCache'), (stat) => stat.cache_read_tokens),
    count(t('output'), (stat) => stat.completion_tokens),
    count(t('freeRequests'), (stat) => stat.free_requests),
    { name: t('cost'), isNumber: true, render: ({ cost_request: cost }) => <Money value={cost} /> },
  ];
}
