/**
 * Writes a row of a CSV file (RFC 4180), with its line break. Text that a spreadsheet would run as a formula gets an
 * apostrophe in front. Numbers are written as they are, also negative ones that are given as text.
 */
export function writeCsvRow(values: readonly (string | number | null)[]): string {
  return `${values.map(writeValue).join(',')}\r\n`;
}

/** Spreadsheets take text that begins with one of these for a formula. */
const formula = /^[=+\-@\t\r]/;
const decimal = /^-?\d+(\.\d+)?$/;
const special = /[",\r\n]/;

function writeValue(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  if (formula.test(value) && !decimal.test(value)) return quote(`'${value}`);
  return special.test(value) ? quote(value) : value;
}

const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;
