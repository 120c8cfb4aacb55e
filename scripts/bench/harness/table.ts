/** A column of a table, and how a row fills it. Headings and cells are aligned to the left in the first one. */
export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
  /** At least; by default 10 in the first column and 7 in the others. */
  readonly width?: number;
  /** Written above the title, and above the columns that follow. At most one column has it. */
  readonly above?: string;
}

/** Formats rows one by one, because each is printed as soon as it has been measured. */
export class Table<Row> {
  readonly #columns: readonly Column<Row>[];

  constructor(columns: readonly Column<Row>[]) {
    this.#columns = columns;
  }

  formatHead(): string {
    const titles = this.#format(({ title }) => title);
    const hasAbove = this.#columns.some(({ above }) => above !== undefined);
    return hasAbove ? `${this.#format(({ above = '' }) => above)}\n${titles}` : titles;
  }

  formatRow(row: Row): string {
    return this.#format(({ cell }) => cell(row));
  }

  /** @returns the head and all rows, one line each */
  format(rows: readonly Row[]): string[] {
    return [this.formatHead(), ...rows.map((row) => this.formatRow(row))];
  }

  #format(read: (column: Column<Row>) => string): string {
    const cells = this.#columns.map((column, i) => {
      const width = Math.max(column.title.length, column.width ?? (i === 0 ? 10 : 7));
      return i === 0 ? read(column).padEnd(width) : read(column).padStart(width);
    });
    return cells.join(' ').trimEnd();
  }
}

const measuredProcesses = ['load', 'vendor', 'api', 'worker', 'redis', 'mongo'] as const;

/** One column for each process, with its CPU milliseconds per unit of work; empty if `read` returns undefined. */
export const cpuColumns = <Row>(
  unit: string,
  read: (row: Row, process: string) => number | undefined,
): Column<Row>[] =>
  measuredProcesses.map((process, i) => ({
    title: process,
    cell: (row) => read(row, process)?.toFixed(3) ?? '',
    ...(i === 0 && { above: `CPU ms per ${unit}` }),
  }));

/** Above this share, other processes disturb the measurement. */
const disturbedShare = 0.1;

/** The share of the CPU time that other processes used. */
export const othersColumn = <Row extends { readonly othersShare: number }>(): Column<Row> => ({
  title: 'others',
  cell: ({ othersShare }) => `${Math.round(othersShare * 100)} %${othersShare > disturbedShare ? ' !' : ''}`,
});

/** Formats a line below a table: a value, and what it is. */
export const formatNote = (name: string, value: string, text: string): string =>
  `${`  ${name}`.padEnd(10)} ${value.padStart(10)}   ${text}`;

/** Formats a result below its title, and its faults. */
export const formatReport = (
  title: string,
  lines: readonly string[],
  faults: readonly string[] = [],
): string => ['', title, ...lines, ...faults.map(formatFault)].join('\n');

export const formatFault = (fault: string): string => `  !!! ERROR  ${fault}`;

export const formatWhole = (value: number): string =>
  Math.round(value).toLocaleString('en').replaceAll(',', ' ');

export const formatCount = (value: number): string => (value < 100 ? value.toFixed(1) : formatWhole(value));

export const formatMs = (ms: number): string => ms.toFixed(ms < 100 ? 1 : 0);

/** Formats a difference with its sign. */
export const formatAddedMs = (ms: number, format: (ms: number) => string): string =>
  `${ms < 0 ? '−' : '+'}${format(Math.abs(ms))} ms`;
