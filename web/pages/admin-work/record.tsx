import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { CodeBlock } from '../../ui/copy.tsx';
import { Fact } from '../../ui/fact.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import type en from './messages.en.ts';

const timeNames = [
  'created',
  'started',
  'ended',
  'deadline',
  'cancel',
  'expires',
  'in_progress',
  'finalizing',
  'completed',
  'failed',
  'expired',
  'cancelling',
  'cancelled',
] as const;

/** The times in a record, as facts: all of its fields that end with `_at`. */
export function Times({ record }: { readonly record: object }) {
  const t = useMessages<typeof en>();
  const times = Object.entries(record).flatMap(([field, value]): [string, string][] =>
    field.endsWith('_at') && typeof value === 'string' ? [[field.slice(0, -'_at'.length), value]] : [],
  );
  return (
    <>
      {times.map(([name, value]) => {
        const known = timeNames.find((one) => one === name);
        return (
          <Fact key={name} name={known === undefined ? name : t(`time_${known}`)}>
            <Time value={value} />
          </Fact>
        );
      })}
    </>
  );
}

/** What commands print with `--json`. */
export function Everything({ record }: { readonly record: object }) {
  const t = useMessages<typeof en>();
  return (
    <details class="admin-work-record">
      <summary class="soft small">{t('record')}</summary>
      <CodeBlock title="JSON" code={JSON.stringify(record, null, 2)} />
    </details>
  );
}

const fieldNames = [
  'model',
  'succeeded',
  'failed',
  'prompt_tokens',
  'completion_tokens',
  'images',
  'cost',
] as const;

type SumRow = Readonly<Record<string, unknown>>;

/** The sums of a batch by model. */
export function ModelSums({ sums }: { readonly sums: readonly object[] }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const rows = sums as readonly SumRow[];
  return (
    <Table
      caption={t('models')}
      rows={rows}
      keyOf={({ model }) => String(model)}
      columns={fieldNames.map((name): Column<SumRow> => ({
        name: t(`field_${name}`),
        isHeader: name === 'model',
        isNumber: name !== 'model',
        render: ({ [name]: value }) => {
          if (typeof value === 'string') return value;
          if (typeof value !== 'number') return '–';
          return name === 'cost' ? <Money value={value} /> : format.number(value);
        },
      }))}
    />
  );
}
