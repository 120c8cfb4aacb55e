import type { Format } from '../../lib/format.ts';
import { compareFields, isDifferent, type FieldChange } from './difference.ts';
import type { AuditEvent } from './outcome.tsx';
import { nameField, writeValue, type Texts } from './write-value.ts';

/** What the name of the change says already, and ids. */
const implied: readonly string[] = [
  'banned',
  'credit',
  'id',
  'ids',
  'drained',
  'disabled',
  'revoked',
  'status',
  'account',
  'replayed',
  'total_balance_added',
  'created_at',
];
/** Of a credit, the rest follows. */
const ofCredit: readonly string[] = ['amount', 'free_requests_added', 'note'];
/** Of the many fields of a new account. */
const ofCreation: readonly string[] = ['name', 'email', 'balance', 'free_requests'];

const maxParts = 3;
const maxLength = 60;

/** What an operator has changed, in a line; empty if the name of the change says it. Pure. */
export function summarizeChange(
  { action, reason, before, after }: AuditEvent,
  t: Texts,
  format: Format,
): string {
  const changes = compareFields(before, after)
    .filter(isDifferent)
    .filter(({ field, after: value }) => isTelling(action, field, value))
    // The reason of a ban is that of the change, which the list shows by itself.
    .filter(({ field, after: value }) => field !== 'ban_reason' || value !== reason);
  const parts = changes
    .slice(0, maxParts)
    .map((change) =>
      action === 'account.credit'
        ? writeCredit(change, t, format)
        : writePart(change, before !== null && action !== 'account.create', t, format),
    );
  const more = changes.length - parts.length;
  return [...parts, ...(more > 0 ? [t('moreChanges', { count: more })] : [])].join(', ');
}

function isTelling(action: string, field: string, value: unknown): boolean {
  const isNothing = value === null || value === 0 || value === '';
  if (action === 'account.credit') return ofCredit.includes(field) && !isNothing;
  if (action === 'account.create') return ofCreation.includes(field) && !isNothing;
  // Other lists are of ids.
  if (Array.isArray(value)) return field === 'models' || field === 'addresses';
  return !implied.includes(field);
}

function writeCredit({ field, after }: FieldChange, t: Texts, format: Format): string {
  if (field === 'amount' && typeof after === 'number')
    return `${after > 0 ? '+' : ''}${format.exactMoney(after)}`;
  if (field === 'note') return `“${shorten(String(after))}”`;
  return `${nameField(field, t) ?? field}: ${writeValue(after, t, format)}`;
}

function writePart(
  { field, before, after }: FieldChange,
  hasBefore: boolean,
  t: Texts,
  format: Format,
): string {
  const write = (value: unknown): string => shorten(writeValue(value, t, format));
  const name = nameField(field, t) ?? field;
  return hasBefore && before !== undefined
    ? `${name}: ${write(before)} → ${write(after)}`
    : `${name}: ${write(after)}`;
}

const shorten = (text: string): string =>
  text.length > maxLength ? `${text.slice(0, maxLength - 1).trimEnd()}…` : text;
