import type { ComponentChildren } from 'preact';

export interface Column<Row> {
  readonly name: string;
  readonly render: (row: Row) => ComponentChildren;
  /** Numbers stand under each other. */
  readonly isNumber?: boolean;
  /** Its cells name the rows. */
  readonly isHeader?: boolean;
}

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
            {columns.map(({ name, isNumber }) => (
              <th key={name} scope="col" class={isNumber === true ? 'number' : undefined}>
                {name}
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

function Cell<Row>({ column, row }: { readonly column: Column<Row>; readonly row: Row }) {
  const className = column.isNumber === true ? 'number' : undefined;
  return column.isHeader === true ? (
    <th scope="row" class={className}>
      {column.render(row)}
    </th>
  ) : (
    <td class={className}>{column.render(row)}</td>
  );
}
