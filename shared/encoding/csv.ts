/**
 * Writes a row of a CSV file (RFC 4180), with its line break. Text that a spreadsheet would run as a formula gets an
 * apostrophe in front. Numbers are written as they are, also negative ones that are given as text.
 */
export function writeCsvRow(values: readonly (string | number | null)[]): string {
  return `${values.map(writeValue).join(',')}\r\n`;
}

/**
 * Spreadsheets take text that begins with one of these for a formula. Where the separator is a semicolon or a tab, a cell
 * also begins after it.
 */
const formula = /^[=+\-@\t\r]|(?<=[;\t])[=+\-@]/g;
const decimal = /^-?\d+(\.\d+)?$/;
const special = /[",\r\n]/;

function writeValue(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  const harmless = decimal.test(value) ? value : value.replace(formula, "'$&");
  return harmless !== value || special.test(value) ? quote(harmless) : value;
}

const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;
