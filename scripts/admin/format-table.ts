const label = (key: string): string => key.replaceAll('_', ' ');

function formatValue(value: unknown): string {
  if (value === null || value === undefined || value === '') return '–';
  if (Array.isArray(value)) return value.length === 0 ? '–' : value.map(formatValue).join(', ');
  if (typeof value === 'object') {
    const shown = Object.entries(value).filter(([, inner]) => inner !== null && inner !== undefined);
    return shown.map(([key, inner]) => `${label(key)} ${formatValue(inner)}`).join(', ');
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function formatRows(rows: readonly Record<string, unknown>[]): string {
  const columns = Object.keys(rows[0]!);
  const cells = rows.map((row) => columns.map((column) => formatValue(row[column])));
  const widths = columns.map((column, i) =>
    Math.max(label(column).length, ...cells.map((row) => row[i]!.length)),
  );
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, i) => text.padEnd(widths[i]!))
      .join('  ')
      .trimEnd();
  return [line(columns.map(label)), line(widths.map((width) => '─'.repeat(width))), ...cells.map(line)].join(
    '\n',
  );
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** A verb's answer as a person reads it: rows as a table, one thing as a list of its fields. */
export function formatTable(answer: unknown): string {
  if (Array.isArray(answer)) {
    if (answer.length === 0) return 'none';
    return answer.every(isRecord) ? formatRows(answer) : answer.map(formatValue).join('\n');
  }
  if (!isRecord(answer)) return formatValue(answer);
  const entries = Object.entries(answer);
  if (entries.length > 0 && entries.every(([, value]) => isRecord(value))) {
    return formatRows(entries.map(([name, value]) => ({ name, ...(value as Record<string, unknown>) })));
  }
  const width = Math.max(...entries.map(([key]) => label(key).length));
  return entries
    .map(([key, value]) =>
      Array.isArray(value) && value.length > 0
        ? [`${label(key)}:`, ...value.map((one) => `  ${formatValue(one)}`)].join('\n')
        : `${label(key).padEnd(width)}  ${Array.isArray(value) ? 'none' : formatValue(value)}`,
    )
    .join('\n');
}
