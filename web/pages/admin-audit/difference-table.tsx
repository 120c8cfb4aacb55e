import { useFormat, type Format } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import type { Translate } from '../../lib/messages.ts';
import { Table } from '../../ui/table.tsx';
import { compareFields, isDifferent, type FieldChange } from './difference.ts';
import type en from './messages.en.ts';

type Texts = Translate<typeof en>;
type FieldName = Extract<keyof typeof en, `field_${string}`>;

/** What something was like before a change and after it, field by field. */
export function Difference({
  before,
  after,
}: {
  readonly before: object | null;
  readonly after: object | null;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const value = (read: (change: FieldChange) => unknown) => (change: FieldChange) => (
    <span class={isDifferent(change) ? 'admin-audit-different' : 'soft'}>
      {writeValue(read(change), t, format)}
    </span>
  );
  return (
    <Table
      caption={t('difference')}
      rows={compareFields(before, after)}
      keyOf={({ field }) => field}
      columns={[
        { name: t('field'), isHeader: true, render: ({ field }) => nameField(field, t) },
        ...(before === null ? [] : [{ name: t('before'), render: value((change) => change.before) }]),
        ...(after === null ? [] : [{ name: t('after'), render: value((change) => change.after) }]),
      ]}
    />
  );
}

/** Fields that this page does not know are named as the API does. */
function nameField(field: string, t: Texts) {
  const key = `field_${field}` as FieldName;
  const name = t(key);
  return name === key ? <code>{field}</code> : name;
}

const isTime = (text: string): boolean => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text);

function writeValue(value: unknown, t: Texts, format: Format): string {
  if (value === undefined || value === null || value === '') return '–';
  if (typeof value === 'boolean') return t(value ? 'yes' : 'no');
  if (typeof value === 'number') return format.exactNumber(value);
  if (typeof value === 'string') return isTime(value) ? format.exactTime(value) : value;
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object'))
    return value.length === 0 ? '–' : value.join(', ');
  return JSON.stringify(value);
}
