import type { ComponentChildren } from 'preact';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Money } from '../../ui/money.tsx';
import type { Column, ColumnSort } from '../../ui/table.tsx';
import { Margin } from '../request-table.tsx';
import { findShare, type SpendOrder, type SpendSums } from './spend.ts';
import type texts from './texts.en.ts';

export interface SpendColumnsOptions<Row> {
  /** How the rows are sorted by what a column shows; nothing where they are not. */
  readonly sortBy?: (order: SpendOrder) => ColumnSort;
  /** Makes a link of a number of requests. */
  readonly link?: (row: Row, isFailed: boolean, text: string) => ComponentChildren;
}

/** The columns of what requests were and cost. */
export function useSpendColumns<Row extends SpendSums>({
  sortBy,
  link = (_, _isFailed, text) => text,
}: SpendColumnsOptions<Row> = {}): readonly Column<Row>[] {
  const t = useMessages<typeof texts>();
  const format = useFormat();
  const column = (
    order: SpendOrder,
    name: string,
    render: (row: Row) => ComponentChildren,
    isMinor = true,
  ): Column<Row> => ({
    name,
    isNumber: true,
    isMinor,
    render,
    ...(sortBy === undefined ? {} : { sort: sortBy(order) }),
  });
  return [
    column('requests', t('spend_requests'), (row) => link(row, false, format.number(row.requests)), false),
    column('failures', t('spend_failures'), (row) =>
      row.failures === 0 ? '0' : link(row, true, format.number(row.failures)),
    ),
    column(
      'tokens',
      t('spend_tokens'),
      (row) => `${format.number(row.prompt_tokens)} → ${format.number(row.completion_tokens)}`,
    ),
    column('cost', t('spend_paid'), ({ cost }) => <Money value={cost} />, false),
    column('vendor_cost', t('spend_vendorCost'), ({ vendor_cost: cost }) =>
      cost === null ? '–' : <Money value={cost} />,
    ),
    column('margin', t('spend_margin'), ({ margin }) => <Margin value={margin} />, false),
    column('margin_share', t('spend_share'), (row) => {
      const share = findShare(row);
      return share === null ? '–' : format.percent(share);
    }),
  ];
}
