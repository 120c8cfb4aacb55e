import { isRecord } from '../../shared/encoding/json-record.ts';
import { toPrintable } from '../../shared/platform/runtime/to-printable.ts';

const none = '–';

const label = (key: string): string => key.replaceAll('_', ' ');

function formatValue(value: unknown): string {
  if (value === null || value === undefined || value === '') return none;
  if (Array.isArray(value)) return value.length === 0 ? none : value.map(formatValue).join(', ');
  if (typeof value === 'object') {
    const shown = Object.entries(value).filter(([, inner]) => inner !== null && inner !== undefined);
    return shown.map(([key, inner]) => `${label(key)} ${formatValue(inner)}`).join(', ');
  }
  return toPrintable(typeof value === 'string' ? value : JSON.stringify(value));
}

interface Column {
  readonly key: string;
  /** One word per line if that makes the column narrower. */
  readonly head: readonly string[];
  readonly width: number;
}

const gap = '  ';

/**
 * Formats a table that is at most `width` wide. If the columns do not fit, the widest ones are moved below their row,
 * one line each.
 */
function formatRows(rows: readonly Record<string, unknown>[], width: number): string {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const whole = keys.map((key) => createColumn(key, [label(key)], rows));
  const all =
    widthOf(whole) <= width ? whole : keys.map((key) => createColumn(key, label(key).split(' '), rows));
  const columns = [...all];
  while (columns.length > 1 && widthOf(columns) > width) {
    const widest = columns.slice(1).reduce((a, b) => (b.width > a.width ? b : a));
    columns.splice(columns.indexOf(widest), 1);
  }
  const folded = all.filter((column) => !columns.includes(column));
  const labelWidth = Math.max(0, ...folded.map(({ key }) => label(key).length));
  const formatLine = (texts: readonly string[]): string =>
    columns
      .map((column, i) => texts[i]!.padEnd(column.width))
      .join(gap)
      .trimEnd();
  const headLines = Math.max(...columns.map(({ head }) => head.length));
  return [
    ...Array.from({ length: headLines }, (_, i) => formatLine(columns.map(({ head }) => head[i] ?? ''))),
    formatLine(columns.map((column) => '─'.repeat(column.width))),
    ...rows.flatMap((row) => [
      formatLine(columns.map(({ key }) => formatValue(row[key]))),
      ...folded.flatMap(({ key }) => {
        const text = formatValue(row[key]);
        return text === none ? [] : foldLines(`${gap}${label(key).padEnd(labelWidth)}${gap}`, text, width);
      }),
    ]),
  ].join('\n');
}

function createColumn(
  key: string,
  words: readonly string[],
  rows: readonly Record<string, unknown>[],
): Column {
  const widest = Math.max(...rows.map((row) => formatValue(row[key]).length));
  const head = label(key).length <= widest ? [label(key)] : words;
  return { key, head, width: Math.max(widest, ...head.map((word) => word.length)) };
}

const widthOf = (columns: readonly Column[]): number =>
  columns.reduce((sum, column) => sum + column.width, gap.length * (columns.length - 1));

/** Formats text after its label, wrapped at spaces. */
function foldLines(start: string, text: string, width: number): string[] {
  const lines: string[] = [];
  let current = start;
  for (const word of text.split(' ')) {
    const isFirst = current.length === start.length;
    if (!isFirst && current.length + 1 + word.length > width) {
      lines.push(current);
      current = ' '.repeat(start.length) + word;
    } else {
      current += isFirst ? word : ` ${word}`;
    }
  }
  return [...lines, current];
}

/** Formats a field with several values, below its name. */
function formatItems(items: readonly unknown[], width: number): string[] {
  const lines = items.every(isRecord)
    ? formatRows(items, width - gap.length).split('\n')
    : items.map(formatValue);
  return lines.map((line) => `${gap}${line}`.trimEnd());
}

/**
 * Formats a verb's result for people: rows as a table, a single object as a list of its fields.
 * @param width columns of the terminal
 */
export function formatTable(result: unknown, width: number): string {
  if (Array.isArray(result)) {
    if (result.length === 0) return 'none';
    return result.every(isRecord) ? formatRows(result, width) : result.map(formatValue).join('\n');
  }
  if (!isRecord(result)) return formatValue(result);
  const entries = Object.entries(result);
  if (entries.length > 0 && entries.every(([, value]) => isRecord(value))) {
    const rows = entries.map(([name, value]) => ({ name, ...(value as Record<string, unknown>) }));
    return formatRows(rows, width);
  }
  const labelWidth = Math.max(...entries.map(([key]) => label(key).length));
  return entries
    .map(([key, value]) =>
      Array.isArray(value) && value.length > 0
        ? [`${label(key)}:`, ...formatItems(value, width)].join('\n')
        : `${label(key).padEnd(labelWidth)}  ${Array.isArray(value) ? 'none' : formatValue(value)}`,
    )
    .join('\n');
}
