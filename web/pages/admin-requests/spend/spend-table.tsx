import { SiteLink } from '../../../frame/site-link.tsx';
import { AccountLink, ModelLink, shortId } from '../../../admin/links.tsx';
import { useSpendColumns } from '../../../admin/spend/spend-columns.tsx';
import { addDays, type SpendRow, type SpendSums } from '../../../admin/spend/spend.ts';
import { hrefWith } from '../../../lib/address-filters.ts';
import { useFormat } from '../../../lib/format.ts';
import { useMessages } from '../../../lib/language.tsx';
import { Table, type Column, type ColumnSort } from '../../../ui/table.tsx';
import type en from '../messages.en.ts';
import { toSelection, useSpendFilter, type SpendFilter } from './spend-filter.ts';

type Row = SpendSums & Partial<Pick<SpendRow, 'account' | 'name' | 'upstream' | 'model' | 'day'>>;
type Dimension = 'account' | 'upstream' | 'model' | 'day';

/** A row for each sum, and what all of them add up to. */
export function SpendTable({
  rows,
  total,
  filter,
}: {
  readonly rows: readonly SpendRow[];
  /** Also of rows that are not shown. */
  readonly total: SpendSums;
  /** What selected them. */
  readonly filter: SpendFilter;
}) {
  const t = useMessages<typeof en>();
  const { filter: shown, sortBy: sort } = useSpendFilter();
  const sortBy = (order: SpendFilter['sort']): ColumnSort => ({
    direction: shown.sort !== order ? null : shown.order === 'asc' ? 'ascending' : 'descending',
    onSort: () => sort(order),
  });
  const dimensions = filter.by.split(',') as Dimension[];
  const columns: readonly Column<Row>[] = [
    ...dimensions.map((name, i): Column<Row> => ({
      name: t(name),
      isHeader: i === 0,
      render: (row) => <Named row={row} by={name} />,
      ...(name === 'day' ? { sort: sortBy('day') } : {}),
    })),
    ...useSpendColumns<Row>({
      sortBy,
      link: (row, isFailed, text) => <SiteLink href={hrefOfRequests(row, filter, isFailed)}>{text}</SiteLink>,
    }),
  ];
  return (
    <Table
      caption={t('view_spend')}
      columns={columns}
      rows={rows}
      keyOf={(row) => dimensions.map((name) => row[name]).join(' ')}
      foot={
        <tr>
          <th scope="row">{t('total')}</th>
          {columns.slice(1).map((column) => (
            <td
              key={column.name}
              class={`${column.isNumber === true ? 'number' : ''} ${column.isMinor === true ? 'minor' : ''}`}
            >
              {column.isNumber === true && column.render(total)}
            </td>
          ))}
        </tr>
      }
    />
  );
}

/** What a row is about. */
function Named({ row, by }: { readonly row: Row; readonly by: Dimension }) {
  const format = useFormat();
  const id = row[by] ?? '';
  switch (by) {
    case 'account':
      return (
        <>
          <AccountLink id={id} name={row.name ?? null} />
          {typeof row.name === 'string' && (
            <code class="request-table-note" title={id}>
              {shortId(id)}
            </code>
          )}
        </>
      );
    case 'upstream':
      return (
        <SiteLink href={`/admin/models?tab=upstreams&upstream=${encodeURIComponent(id)}`} class="id-link">
          {id}
        </SiteLink>
      );
    case 'model':
      return <ModelLink id={id} />;
    case 'day':
      return <span class="admin-requests-day">{format.fullDay(id)}</span>;
  }
}

/** The requests that a row sums, or the failed ones, or those of all rows. */
function hrefOfRequests(row: Row, filter: SpendFilter, isFailed: boolean): string {
  const { by: _, since, until, ...filters } = toSelection(filter);
  const { account, upstream, model } = { ...filters, ...row };
  const [first, last] = row.day === undefined ? [since, until] : [row.day, row.day];
  return hrefWith('/admin/requests', {
    account: account ?? null,
    upstream: upstream ?? null,
    model: model ?? null,
    outcome: isFailed ? 'error' : null,
    since: `${first}T00:00:00Z`,
    until: `${addDays(last, 1)}T00:00:00Z`,
  });
}
