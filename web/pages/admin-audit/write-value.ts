import type { Format } from '../../lib/format.ts';
import type { Translate } from '../../lib/messages.ts';
import type en from './messages.en.ts';

export type Texts = Translate<typeof en>;
type FieldName = Extract<keyof typeof en, `field_${string}`>;

/** @returns null for a field that this page does not know */
export function nameField(field: string, t: Texts): string | null {
  const key = `field_${field}` as FieldName;
  const name = t(key);
  return name === key ? null : name;
}

/** @returns a word of the API in the language of the page, or the text itself */
function writeWord(text: string, t: Texts): string {
  const key = `value_${text}` as Extract<keyof typeof en, `value_${string}`>;
  const word = t(key);
  return word === key ? text : word;
}

const isTime = (text: string): boolean => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text);

/** Writes a value of the audit log for people. */
export function writeValue(value: unknown, t: Texts, format: Format): string {
  if (value === undefined || value === null || value === '') return '–';
  if (typeof value === 'boolean') return t(value ? 'yes' : 'no');
  if (typeof value === 'number') return format.exactNumber(value);
  if (typeof value === 'string') return isTime(value) ? format.exactTime(value) : writeWord(value, t);
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object'))
    return value.length === 0 ? '–' : value.join(', ');
  return JSON.stringify(value);
}
