import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Table } from '../../ui/table.tsx';
import { compareFields, isDifferent, type FieldChange } from './difference.ts';
import type en from './messages.en.ts';
import { nameField, writeValue } from './write-value.ts';

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
        {
          name: t('field'),
          isHeader: true,
          render: ({ field }) => nameField(field, t) ?? <code>{field}</code>,
        },
        ...(before === null ? [] : [{ name: t('before'), render: value((change) => change.before) }]),
        ...(after === null ? [] : [{ name: t('after'), render: value((change) => change.after) }]),
      ]}
    />
  );
}
