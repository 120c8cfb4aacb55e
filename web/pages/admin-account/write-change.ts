import type { Account } from './account.ts';
import type { Format } from '../../lib/format.ts';
import type { Translate } from '../../lib/messages.ts';
import type en from './messages.en.ts';

type Texts = Translate<typeof en>;
type Budget = Pick<NonNullable<Account['budget']>, 'amount' | 'period'>;

const money: readonly string[] = ['balance', 'amount', 'low_balance'];

/** Names of fields of the audit log, where the name of a setting says its unit, or there is no such setting. */
const fieldNames = {
  balance: 'balance',
  budget: 'budgetOfOperator',
  low_balance: 'lowBalance',
  amount: 'fieldAmount',
  free_requests_added: 'fieldFree',
  ban_reason: 'fieldReason',
  key: 'fieldKey',
  created: 'fieldCreated',
  shown: 'fieldShown',
  rotated: 'fieldRotated',
} as const satisfies Readonly<Record<string, keyof typeof en>>;

/** Returns the name of a field of the audit log, or the API's own. */
export function nameField(name: string, t: Texts): string {
  const known = Object.entries(fieldNames).find(([field]) => field === name)?.[1];
  if (known !== undefined) return t(known);
  const key = `setting_${name}` as 'setting_name';
  const text = t(key);
  return text === key ? name : text;
}

const isBudget = (value: unknown): value is Budget =>
  typeof value === 'object' && value !== null && 'amount' in value && 'period' in value;

/** Writes a value of the audit log for people. */
export function writeValue(name: string, value: unknown, t: Texts, format: Format): string {
  if (value === null || value === undefined || value === '') return '–';
  if (value === true) return t('yes');
  if (typeof value === 'number')
    return money.includes(name) ? format.exactMoney(value) : format.exactNumber(value);
  if (Array.isArray(value)) return value.join(', ');
  if (isBudget(value)) return t(`per_${value.period}`, { amount: format.price(value.amount) });
  if (name === 'expires_at' && typeof value === 'string') return format.dateTime(value);
  return typeof value === 'string' ? value : JSON.stringify(value);
}
