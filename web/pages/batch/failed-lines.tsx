import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { Reason } from '../../ui/reason.tsx';
import { Table } from '../../ui/table.tsx';
import type { Batch } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';
import { useMustMendFirst } from './mend-first.ts';
import { canRetry, RetryBatch } from './retry-batch.tsx';
import { findReason, maxShownErrors, useFirstLines, type ResultLine } from './read-lines.ts';

/** Lines that failed, with their reasons. There may be many thousands: the first ones stand for the others. */
export function FailedLines({ batch }: { readonly batch: Batch }) {
  const t = useMessages<typeof en>();
  const { failed } = batch.request_counts;
  const title = t(batch.lines_not_run > 0 ? 'linesWithout' : 'failedLines', { count: failed });
  const mustMend = useMustMendFirst(batch);
  const query = useFirstLines(batch, batch.partial_error_file_id, failed, maxShownErrors);
  if (failed === 0 || batch.partial_error_file_id === null) return null;
  return (
    <Card title={title} actions={mustMend && canRetry(batch) && <RetryBatch batch={batch} isInVain />}>
      <QueryView query={query} loading={<Skeleton lines={4} height="2rem" />}>
        {(lines) => (
          <>
            {lines.length < failed && <p class="soft small">{t('firstOnly', { count: lines.length })}</p>}
            <Table
              caption={title}
              rows={lines}
              keyOf={({ custom_id: id }) => id}
              columns={[
                {
                  name: t('customId'),
                  isHeader: true,
                  render: ({ custom_id: id }) => <code class="batch-id">{id}</code>,
                },
                { name: t('reason'), render: (line) => <LineReason line={line} /> },
              ]}
            />
          </>
        )}
      </QueryView>
    </Card>
  );
}

function LineReason({ line }: { readonly line: ResultLine }) {
  const t = useMessages<typeof en>();
  const { code, message } = findReason(line);
  const known = notRunCodes.find((one) => one === code);
  return (
    <div class="batch-reason">
      <div>{known === undefined ? <Reason code={code} message={message} /> : t(known)}</div>
      {known === undefined && code !== null && <code class="soft">{code}</code>}
    </div>
  );
}

/** Codes of lines that were not run, each with a text. */
const notRunCodes = [
  'insufficient_balance',
  'batch_cancelled',
  'batch_expired',
  'budget_exceeded',
  'model_not_allowed',
  'key_expired',
  'account_banned',
  'input_lost',
] as const;
