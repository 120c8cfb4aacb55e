import type { ComponentChildren } from 'preact';

/** How rows are sorted by a column. */
export interface ColumnSort {
  /** Null if they are sorted by another one. */
  readonly direction: 'ascending' | 'descending' | null;
  /** Sorts by it, or the other way round. */
  readonly onSort: () => void;
}

export interface Column<Row> {
  readonly name: string;
  readonly render: (row: Row) => ComponentChildren;
  /** Numbers stand under each other. */
  readonly isNumber?: boolean;
  /** Its cells name the rows. */
  readonly isHeader?: boolean;
  /** Left out at phone width: what the row opens has it, too. */
  readonly isMinor?: boolean;
  /** Makes its name a button. */
  readonly sort?: ColumnSort;
}

const classOf = <Row,>({ isNumber, isMinor }: Column<Row>): string | undefined =>
  [isNumber === true ? 'number' : '', isMinor === true ? 'minor' : ''].join(' ').trim() || undefined;

/** A table. At phone width it scrolls within itself, also by keyboard. */
export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
  foot,
}: {
  /** What the table shows, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  /** Rows of totals. */
  readonly foot?: ComponentChildren;
}) {
  return (
    <div class="table-scroll" role="region" aria-label={caption} tabIndex={0}>
      <table class="table">
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.name}
                scope="col"
                class={classOf(column)}
                aria-sort={column.sort?.direction ?? undefined}
              >
                {column.sort === undefined ? (
                  column.name
                ) : (
                  <SortButton name={column.name} sort={column.sort} />
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <Cell key={column.name} column={column} row={row} />
              ))}
            </tr>
          ))}
        </tbody>
        {foot !== undefined && <tfoot>{foot}</tfoot>}
      </table>
    </div>
  );
}

const SortButton = ({
  name,
  sort: { direction, onSort },
}: {
  readonly name: string;
  readonly sort: ColumnSort;
}) => (
  <button type="button" class="table-sort" onClick={onSort}>
    {name}
    {direction !== null && <span aria-hidden="true">{direction === 'ascending' ? ' ↑' : ' ↓'}</span>}
  </button>
);

function Cell<Row>({ column, row }: { readonly column: Column<Row>; readonly row: Row }) {
  const className = classOf(column);
  return column.isHeader === true ? (
    <th scope="row" class={className}>
      {column.render(row)}
    </th>
  ) : (
    <td class={className}>{column.render(row)}</td>
  );
}
