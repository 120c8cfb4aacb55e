import type { components } from '../../generated/api.d.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Money } from '../../ui/money.tsx';
import { Reason } from '../../ui/reason.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';

type Model = components['schemas']['FileCostEstimate']['models'][number];

/** The estimate of each model that lines name, and why some cannot run. */
export function ModelTable({ models }: { readonly models: readonly Model[] }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <Table
      caption={t('byModel')}
      rows={models}
      keyOf={({ model }) => model ?? ''}
      columns={[
        {
          name: t('model'),
          isHeader: true,
          render: ({ model, error }) => (
            <>
              {model ?? t('noModel')}
              {error !== undefined && (
                <div class="jobs-wrong">
                  <Reason code={null} message={error} />
                </div>
              )}
            </>
          ),
        },
        { name: t('linesLabel'), isNumber: true, render: (row) => format.number(row.request_count) },
        { name: t('tokens'), isNumber: true, render: (row) => format.number(row.estimated_input_tokens) },
        { name: t('cost'), isNumber: true, render: (row) => <Money value={row.estimated_cost} /> },
      ]}
    />
  );
}
