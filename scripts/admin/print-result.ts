import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { PlainText } from './command.ts';
import { formatTable } from './format-table.ts';
import { toPrintable } from '../../shared/platform/runtime/to-printable.ts';

/** Rows printed together. */
const pageSize = 100;

export interface PrintOptions {
  readonly json: boolean;
  /** Columns of the terminal. */
  readonly width: number;
  /** Fields that a table shows. Defaults to all. */
  readonly columns?: readonly string[] | undefined;
}

/** Prints a verb's result. Rows from an AsyncIterable are printed as they arrive, one page at a time. */
export async function printResult(result: unknown, out: Writable, options: PrintOptions): Promise<void> {
  const text =
    result instanceof PlainText
      ? result.lines
      : isRows(result)
        ? printRows(result, options)
        : [`${print(result, options)}\n`];
  try {
    await pipeline(Readable.from(text), out, { end: false });
  } catch (error) {
    // The reader has closed the pipe, such as `head` after ten lines.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  }
}

const isRows = (result: unknown): result is AsyncIterable<object> =>
  typeof result === 'object' && result !== null && Symbol.asyncIterator in result;

const toJson = (value: unknown): string => toPrintable(JSON.stringify(value));

const print = (result: unknown, { json, width }: PrintOptions): string =>
  json ? toJson(result) : formatTable(result, width);

/** Prints one array as JSON, or a table per page, with columns as wide as that page's rows need. */
async function* printRows(rows: AsyncIterable<object>, options: PrintOptions): AsyncGenerator<string> {
  let pages = 0;
  for await (const page of toPages(rows)) {
    const isFirst = pages++ === 0;
    yield options.json
      ? `${isFirst ? '[' : ','}${page.map(toJson).join(',')}`
      : `${isFirst ? '' : '\n'}${formatTable(pick(page, options.columns), options.width)}\n`;
  }
  if (options.json) yield pages === 0 ? '[]\n' : ']\n';
  else if (pages === 0) yield `${formatTable([], options.width)}\n`;
}

const pick = (page: readonly object[], columns: readonly string[] | undefined): readonly object[] =>
  columns === undefined
    ? page
    : page.map((row) => Object.fromEntries(Object.entries(row).filter(([key]) => columns.includes(key))));

async function* toPages(rows: AsyncIterable<object>): AsyncGenerator<object[]> {
  let page: object[] = [];
  for await (const row of rows) {
    page.push(row);
    if (page.length < pageSize) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}
